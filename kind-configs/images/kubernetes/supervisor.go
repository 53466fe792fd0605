package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

var started = time.Now()

// say writes a line to the container's log, as k3s does.
func say(format string, values ...any) {
	now := time.Now().UTC().Format(time.RFC3339)
	message := fmt.Sprintf(format, values...)
	fmt.Fprintf(os.Stderr, "time=%q level=info after=%.2fs msg=%q\n", now, time.Since(started).Seconds(), message)
}

func must(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "time=%q level=fatal msg=%q\n", time.Now().UTC().Format(time.RFC3339), err)
		os.Exit(1)
	}
}

// supervisor keeps programs running: one that ends is started again, until stop.
type supervisor struct {
	logs     string
	mutex    sync.Mutex
	running  map[string]*exec.Cmd
	stopping bool
	ended    sync.WaitGroup
}

func newSupervisor(logs string) *supervisor {
	return &supervisor{logs: logs, running: map[string]*exec.Cmd{}}
}

// run starts a program, and again half a second after each of its ends.
func (s *supervisor) run(name string, arguments ...string) {
	s.ended.Go(func() {
		for {
			command := s.start(name, arguments)
			if command == nil {
				return
			}
			err := command.Wait()
			s.mutex.Lock()
			stopping := s.stopping
			s.mutex.Unlock()
			if stopping {
				return
			}
			say("%s ended (%v): starting it again", name, err)
			time.Sleep(500 * time.Millisecond)
		}
	})
}

// start starts a program once; nil while stopping.
func (s *supervisor) start(name string, arguments []string) *exec.Cmd {
	log, err := os.OpenFile(filepath.Join(s.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(err)
	defer log.Close()
	command := exec.Command("/bin/"+name, arguments...)
	command.Stdout, command.Stderr = log, log
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.stopping {
		return nil
	}
	must(command.Start())
	s.running[name] = command
	return command
}

// stop asks everything to end, waits a little, and gives etcd the last word. The rest dies with the first process.
func (s *supervisor) stop() {
	s.mutex.Lock()
	s.stopping = true
	etcd := s.running["etcd"]
	for _, command := range s.running {
		if command != etcd {
			_ = command.Process.Signal(syscall.SIGTERM)
		}
	}
	s.mutex.Unlock()
	ended := make(chan struct{})
	go func() { s.ended.Wait(); close(ended) }()
	// The API server waits for its watchers, who do not mean to leave.
	time.AfterFunc(time.Second, func() { _ = etcd.Process.Signal(syscall.SIGTERM) })
	select {
	case <-ended:
	case <-time.After(2 * time.Second):
	}
}
