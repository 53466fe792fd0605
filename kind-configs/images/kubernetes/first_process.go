package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// What tells the second start of the same command that it is the second.
const stage = "K3S_FIRST_PROCESS"

// firstProcess sets the container up for a node, if it is to be one, starts the same command again as its child, and only reaps and forwards signals from
// then on: containerd's shims and the pods' processes become its children, and the child can wait for its own in peace.
func firstProcess(node bool) int {
	// A namespace belongs to a thread, and the child gets those of the thread that starts it.
	runtime.LockOSThread()
	if node {
		// Docker shows cgroup v1 as the host has it: below this namespace's root, /proc/self/cgroup and the mounts agree again.
		if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
			must(fmt.Errorf("a node needs a privileged container, a control plane alone (--disable-agent) does not: %w", err))
		}
		arrangeMounts()
	}
	// Reaps orphans even where something else is process 1, as with `docker run --init`.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		say("orphans go to somebody else: %v", err)
	}
	child, err := os.StartProcess("/proc/self/exe", append([]string{"k3s", "server"}, os.Args[1:]...), &os.ProcAttr{
		Env:   append(os.Environ(), stage+"=done"),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	must(err)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = child.Signal(s)
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR || pid != child.Pid && err == nil:
			continue
		case err != nil:
			return 1
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
