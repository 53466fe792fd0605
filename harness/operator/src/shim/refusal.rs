//! Why namespaces are refused: the kernel has one EPERM for many reasons, and users need to know which.

use crate::wire::Refusal;
use std::{fs, io};

pub(super) fn refused(step: &str, error: impl Into<io::Error>) -> Refusal {
    Refusal { why: Some(why(|path| fs::read_to_string(path).unwrap_or_default())), ..Refusal::new(step, error) }
}

fn why(read: impl Fn(&str) -> String) -> String {
    let sysctl = |name: &str, value: &str| read(&format!("/proc/sys/{name}")).trim() == value;
    let seccomp = || read("/proc/self/status").lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
    let profile = read("/proc/self/attr/current");
    let reason = if sysctl("user/max_user_namespaces", "0") {
        "user namespaces are switched off: set sysctl user.max_user_namespaces above 0, or run as root"
    } else if sysctl("kernel/unprivileged_userns_clone", "0") {
        "user namespaces are for root only: set sysctl kernel.unprivileged_userns_clone=1, or run as root"
    } else if sysctl("kernel/apparmor_restrict_unprivileged_userns", "1") {
        // Ubuntu 23.10 and later.
        "AppArmor restricts user namespaces: set sysctl kernel.apparmor_restrict_unprivileged_userns=0, add a profile with \
         `userns,`, or run as root"
    } else if seccomp() {
        "seccomp forbids it, as in a container: run that with --security-opt seccomp=unconfined, or --privileged"
    } else {
        "not permitted here (a chroot, a container or a security module)"
    };
    match profile.trim_end_matches(['\0', '\n']) {
        "" | "unconfined" => reason.to_owned(),
        profile => format!("{reason} (security profile: {profile})"),
    }
}

#[cfg(test)]
mod tests {
    use super::why;

    #[test]
    fn the_likeliest_reason_is_named() {
        let on = |file: &'static str, text: &'static str| {
            why(move |path| if path.ends_with(file) { text.to_owned() } else { String::new() })
        };
        assert!(on("max_user_namespaces", "0\n").contains("max_user_namespaces above 0"));
        assert!(on("unprivileged_userns_clone", "0\n").contains("unprivileged_userns_clone=1"));
        assert!(on("apparmor_restrict_unprivileged_userns", "1\n").contains("restrict_unprivileged_userns=0"));
        assert!(on("status", "Name:\tx\nSeccomp:\t2\n").contains("seccomp=unconfined"));
        assert!(on("status", "Seccomp:\t0\n").contains("not permitted here"));
        assert!(
            on("attr/current", "unprivileged_userns (enforce)\n")
                .ends_with("(security profile: unprivileged_userns (enforce))")
        );
        assert!(!on("attr/current", "unconfined\n").contains("profile:"));
    }
}
