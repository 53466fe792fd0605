//! Builds: a command of the suite, and Go modules from a module proxy in a folder.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use spiritlevel_operator::{BuildSpec, CommandBuild, Error, GoModule, build, module_dir};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::{env, fs};

/// Packs `FOLDER` into the module zip `ZIP` under the prefix `MODULE@VERSION/`.
const PACK: &str = r#"package main

import ("archive/zip"; "os"; "path/filepath")

func must(err error) { if err != nil { panic(err) } }

func main() {
	out, err := os.Create(os.Args[2]); must(err)
	z := zip.NewWriter(out)
	must(filepath.WalkDir(os.Args[1], func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() { return err }
		name, err := filepath.Rel(os.Args[1], path); must(err)
		w, err := z.Create(os.Args[3] + "/" + filepath.ToSlash(name)); must(err)
		text, err := os.ReadFile(path); must(err)
		_, err = w.Write(text); return err
	}))
	must(z.Close())
}
"#;

fn main() -> ExitCode {
    if let Some(code) = spiritlevel_operator::intercept() {
        return code;
    }
    if env::args().nth(1).as_deref() == Some("__inside") {
        return match on_runtime(modules()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", error.message().unwrap_or_default());
                ExitCode::FAILURE
            }
        };
    }
    let trials = vec![
        Trial::test("a_command_leaves_a_program", || on_runtime(a_command_leaves_a_program())),
        Trial::test("failures_say_what_to_do", || on_runtime(failures_say_what_to_do())),
        Trial::ignorable_test("a_go_module_is_built_once", a_go_module_is_built_once),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

type Outcome = Result<(), Failed>;

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

fn command(dir: &Path, words: &[&str]) -> BuildSpec {
    let command = words.iter().map(|word| (*word).to_owned()).collect();
    BuildSpec::Command(CommandBuild { command, dir: dir.into(), produces: "out/program".into() })
}

async fn a_command_leaves_a_program() -> Outcome {
    let dir = tempfile::tempdir()?;
    let said = Mutex::new(Vec::new());
    let hear = |line: &str| said.lock().expect("not poisoned").push(line.to_owned());
    let script = "echo one; echo two >&2; mkdir -p out; cp /bin/true out/program";
    let built = build(&command(dir.path(), &["sh", "-c", script]), dir.path(), &hear).await?;
    assert_eq!(built, dir.path().join("out/program"));
    assert_eq!(said.into_inner()?, ["one", "two"]);
    Ok(())
}

async fn failures_say_what_to_do() -> Outcome {
    let dir = tempfile::tempdir()?;
    let check = async |words: &[&str], parts: &[&str]| {
        let error = build(&command(dir.path(), words), dir.path(), &|_| {}).await.expect_err("a failure");
        for part in parts {
            assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
        }
    };
    check(&["no-such-tool"], &["run `no-such-tool` in", "is that tool installed"]).await;
    check(&["./gradlew"], &["run `./gradlew` in", "is that tool installed"]).await;
    check(&["true"], &["`true` succeeded, but", "out/program", "build.produces"]).await;
    check(&["sh", "-c", "echo broken; exit 3"], &["exit status: 3", "\nbroken"]).await;
    check(&[], &["`build.command` is empty"]).await;
    Ok(())
}

/// In another process, whose environment names the proxy.
fn a_go_module_is_built_once() -> Result<Completion, Failed> {
    if Command::new("go").arg("version").output().is_err() {
        return Ok(Completion::ignored_with("go is not installed"));
    }
    let dir = tempfile::tempdir()?;
    let proxy = dir.path().join("proxy");
    let replaced = "require example.com/sub v1.0.0\nreplace example.com/sub => ./sub\n";
    let main = "package main\n\nimport (\"fmt\"; \"example.com/sub\")\n\nfunc main() { fmt.Println(sub.Word) }\n";
    publish(&proxy, "example.com/op", "v1.2.3", replaced, ("cmd/manager/main.go", main))?;
    publish(&proxy, "example.com/sub", "v1.0.0", "", ("sub.go", "package sub\n\nconst Word = \"published\"\n"))?;
    let mut inside = Command::new(env::current_exe()?);
    inside.arg("__inside").current_dir(dir.path());
    inside.env("GOPROXY", format!("file://{}", proxy.display())).env("GOSUMDB", "off").env("GONOPROXY", "none");
    inside.env("GOMODCACHE", dir.path().join("modules")).env("GOFLAGS", "-modcacherw").env("GOTOOLCHAIN", "local");
    let output = inside.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(Completion::Completed) } else { Err(said.into()) }
}

/// Puts a module with one package into the proxy's folder.
fn publish(proxy: &Path, module: &str, version: &str, more: &str, (file, text): (&str, &str)) -> Outcome {
    let scratch = tempfile::tempdir()?;
    let source = scratch.path().join("source");
    let at = proxy.join(module).join("@v");
    fs::create_dir_all(source.join(file).parent().expect("a folder"))?;
    fs::create_dir_all(&at)?;
    let go_mod = format!("module {module}\n\ngo 1.21\n\n{more}");
    fs::write(source.join("go.mod"), &go_mod)?;
    fs::write(source.join(file), text)?;
    fs::write(at.join(format!("{version}.mod")), &go_mod)?;
    fs::write(
        at.join(format!("{version}.info")),
        format!(r#"{{"Version":"{version}","Time":"2024-01-01T00:00:00Z"}}"#),
    )?;
    fs::write(scratch.path().join("pack.go"), PACK)?;
    let mut pack = Command::new("go");
    pack.arg("run").arg(scratch.path().join("pack.go")).arg(source).arg(at.join(format!("{version}.zip")));
    let packed = pack.arg(format!("{module}@{version}")).current_dir(scratch.path()).env("GOWORK", "off").output()?;
    if packed.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&packed.stderr).into_owned().into()) }
}

async fn modules() -> Outcome {
    let cache = PathBuf::from("cache");
    let module = GoModule {
        module: "example.com/op".into(),
        version: "v1.2.3".into(),
        package: "./cmd/manager".into(),
        replace: BTreeMap::new(),
    };
    let dir = module_dir(&module.module, &module.version, &|_| {}).await?;
    assert!(dir.join("cmd/manager/main.go").is_file(), "{}", dir.display());

    // Two builders at once, and later a third: one build.
    let said = Mutex::new(Vec::new());
    let hear = |line: &str| said.lock().expect("not poisoned").push(line.to_owned());
    let spec = BuildSpec::GoModule(module.clone());
    let (first, second) = tokio::join!(build(&spec, &cache, &hear), build(&spec, &cache, &hear));
    let program = first?;
    assert_eq!(program, cache.join("example.com/op@v1.2.3/cmd_manager/manager"));
    assert_eq!([second?, build(&spec, &cache, &hear).await?], [program.clone(), program.clone()]);
    let said = said.into_inner()?;
    let times = |start: &str| said.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((times("building example.com/op@v1.2.3"), times("waiting for another")), (1, 1), "{said:?}");
    assert_eq!(Command::new(program).output()?.stdout, b"published\n");
    let left: Vec<_> = fs::read_dir(cache.join("example.com/op@v1.2.3/cmd_manager"))?.flatten().collect();
    assert_eq!(left.len(), 2, "the program and the lock: {left:?}");

    let check = async |change: &dyn Fn(&mut GoModule), expected: &str| {
        let mut module = module.clone();
        change(&mut module);
        let error = build(&BuildSpec::GoModule(module), &cache, &|_| {}).await.expect_err(expected);
        assert!(error.to_string().contains(expected), "{expected:?} is missing in: {error}");
        error
    };
    check(&|module| module.version = "latest".into(), "exact version").await;
    let error = check(&|module| module.version = "v9.9.9".into(), "example.com/op@v9.9.9").await;
    assert!(matches!(error, Error::Module { .. }), "{error:?}");
    check(&|module| module.package = "./cmd/missing".into(), "correct `package`").await;
    Ok(())
}
