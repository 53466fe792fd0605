package main

import (
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// kubelet sets these where they differ, and they are the whole machine's, not the container's.
var machineSysctls = map[string]string{
	"kernel/keys/root_maxbytes": "25000000",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
}

// arrangeMounts makes of a privileged container's file system what kubelet and containerd expect. A
// step that fails is told; most pods do without it.
func arrangeMounts() {
	told := func(what string, err error) {
		if err != nil {
			say("%s: %v", what, err)
		}
	}
	// Pods may ask for mounts that reach them after their start.
	told("share mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""))
	mounts := mountPoints()
	if !slices.ContainsFunc(mounts, func(m mountPoint) bool { return m.path == "/run" && m.kind == "tmpfs" }) {
		// What is there speaks of processes that died with the last start.
		told("tmpfs on /run", unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"))
	}
	shadowSysctls(told)
	// kubelet reports it, and a node without one looks like every other.
	if _, err := os.Stat("/etc/machine-id"); err != nil {
		told("make /etc/machine-id", os.WriteFile("/etc/machine-id", []byte(strings.ReplaceAll(uuid.NewString(), "-", "")+"\n"), 0o444))
	}
	for _, m := range mounts {
		if m.kind == "cgroup" {
			told("unmount "+m.path, unix.Unmount(m.path, unix.MNT_DETACH))
			told("mount "+m.path, unix.Mount("cgroup", m.path, "cgroup", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, m.cgroupOptions()))
		}
	}
	var fs unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		delegateCgroup2(told)
	}
}

// shadowSysctls lays files with the wanted values over the machine's, so that kubelet finds nothing to change.
func shadowSysctls(told func(string, error)) {
	told("make /run/sysctl", os.MkdirAll("/run/sysctl", 0o755))
	for name, value := range machineSysctls {
		shadow := "/run/sysctl/" + strings.ReplaceAll(name, "/", "_")
		err := os.WriteFile(shadow, []byte(value+"\n"), 0o644)
		if err == nil {
			err = unix.Mount(shadow, "/proc/sys/"+name, "", unix.MS_BIND, "")
		}
		told("shadow "+name, err)
	}
}

// delegateCgroup2 mounts the hierarchy as this namespace sees it. Controllers can be handed down only by a group without
// processes, so those that are there go into one of their own.
func delegateCgroup2(told func(string, error)) {
	const root = "/sys/fs/cgroup"
	told("unmount "+root, unix.Unmount(root, unix.MNT_DETACH))
	told("mount "+root, unix.Mount("cgroup2", root, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
	told("make a group", os.MkdirAll(root+"/init", 0o755))
	processes, _ := os.ReadFile(root + "/cgroup.procs")
	for pid := range strings.FieldsSeq(string(processes)) {
		told("move process "+pid, os.WriteFile(root+"/init/cgroup.procs", []byte(pid), 0o644))
	}
	controllers, _ := os.ReadFile(root + "/cgroup.controllers")
	for controller := range strings.FieldsSeq(string(controllers)) {
		told("delegate "+controller, os.WriteFile(root+"/cgroup.subtree_control", []byte("+"+controller), 0o644))
	}
}

type mountPoint struct{ path, kind, options string }

func mountPoints() (mounts []mountPoint) {
	content, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(content)) {
		if f := strings.Fields(line); len(f) > 3 {
			mounts = append(mounts, mountPoint{f[1], f[2], f[3]})
		}
	}
	return mounts
}

// cgroupOptions are those of the hierarchy, without those of the mount.
func (m mountPoint) cgroupOptions() string {
	var options []string
	for option := range strings.SplitSeq(m.options, ",") {
		switch {
		case slices.Contains([]string{"rw", "ro", "nosuid", "nodev", "noexec", "relatime", "xattr"}, option):
		case strings.HasPrefix(option, "release_agent="):
		case strings.HasPrefix(option, "name="):
			options = append(options, "none", option)
		default:
			options = append(options, option)
		}
	}
	return strings.Join(options, ",")
}
