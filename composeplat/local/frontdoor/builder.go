package main

import (
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// A builder runs an image builder that is not root of this machine, but of a user namespace whose users have no rights here.
// Its steps get a network of their own, without this machine's loopback.
//
// It has two processes. The one outside stays root, for slirp4netns. The one inside is process 1 of a PID namespace: when it
// exits, the kernel ends the builder and every step.
type builder struct {
	folder  string
	user    int
	network string
	command []string
}

const (
	// idCount is the number of users and groups in the namespace.
	idCount = 65536
	// socketDescriptor is the socket to the process outside, in the process inside.
	socketDescriptor = 3
	// restartPause keeps slirp4netns from being started in a loop.
	restartPause = 2 * time.Second
)

// parseBuilder reads FOLDER USER NETWORK COMMAND...; NETWORK is the path of slirp4netns, none or host.
func parseBuilder(arguments []string) (builder, error) {
	if len(arguments) < 4 {
		return builder{}, errors.New("not enough arguments")
	}
	user, err := strconv.Atoi(arguments[1])
	if err != nil || user <= 0 {
		return builder{}, fmt.Errorf("not a user: %s", arguments[1])
	}
	return builder{folder: arguments[0], user: user, network: arguments[2], command: arguments[3:]}, nil
}

// runBuilder starts the process inside, and exits with its status.
func runBuilder(arguments []string) {
	settings, err := parseBuilder(arguments)
	if err != nil {
		log.Fatal(err)
	}
	// The process inside gets its death signal when this thread ends.
	runtime.LockOSThread()
	near, far, err := socketPair()
	if err != nil {
		log.Fatal(err)
	}
	inside := settings.inside(far)
	if err := inside.Start(); err != nil {
		log.Fatalf("can't make a user namespace for builds (see sysctl user.max_user_namespaces): %v", err)
	}
	far.Close()
	leaveEndingToBuilder()
	if settings.hasOwnNetwork() {
		go settings.connectOutside(near)
	}
	inside.Wait()
	os.Exit(exitStatus(inside.ProcessState.Sys().(syscall.WaitStatus)))
}

func (b builder) hasOwnNetwork() bool { return b.network != "host" }

func (b builder) inside(socket *os.File) *exec.Cmd {
	inside := exec.Command("/proc/self/exe", append([]string{"builder-inside", b.folder, b.network}, b.command...)...)
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	inside.ExtraFiles = []*os.File{socket}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: b.user, Size: idCount}}
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		UidMappings:                ids,
		GidMappings:                ids,
		GidMappingsEnableSetgroups: true,
		Credential:                 &syscall.Credential{Uid: 0, Gid: 0},
		Pdeathsig:                  syscall.SIGKILL,
	}
	return inside
}

// connectOutside runs slirp4netns for the network of the process inside, until this process exits.
func (b builder) connectOutside(socket *net.UnixConn) {
	network, err := receiveFile(socket)
	if err != nil {
		log.Printf("no network for the steps of builds: %v", err)
		return
	}
	if b.network == "none" {
		return
	}
	runtime.LockOSThread()
	for {
		slirp, ends := slirp4netns(b.network, network, uplinkRange)
		err := slirp.Run()
		ends.Close()
		log.Printf("slirp4netns ended: %v", err)
		time.Sleep(restartPause)
	}
}

// slirp4netns connects a network with this machine's, except its loopback. It exits with this process, which holds the file
// that is returned.
func slirp4netns(path string, network *os.File, addresses string) (*exec.Cmd, *os.File) {
	exitRead, exitWrite, err := os.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	slirp := exec.Command(path, "--configure", "--mtu="+mtu, "--cidr="+addresses, "--disable-host-loopback",
		"--enable-sandbox", "--enable-seccomp", "--netns-type=path", "--exit-fd=4", "/proc/self/fd/3", uplink)
	slirp.Stdout, slirp.Stderr = os.Stdout, os.Stderr
	slirp.ExtraFiles = []*os.File{network, exitRead}
	// Its sandbox unmounts filesystems, which in a shared namespace would be the cluster's.
	slirp.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNS}
	return slirp, exitWrite
}

// leaveEndingToBuilder makes this process survive SIGTERM. The supervisor signals every process, the builder too, which
// exits without cleaning up if it gets a second signal. Ignored signals would be inherited by the steps.
func leaveEndingToBuilder() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT)
}

func exitStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// a file over a socket ------------------------------------------------------------------------------------------------

func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	near, err := unixConnection(os.NewFile(uintptr(pair[0]), "near"))
	return near, os.NewFile(uintptr(pair[1]), "far"), err
}

func unixConnection(file *os.File) (*net.UnixConn, error) {
	defer file.Close()
	connection, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return connection.(*net.UnixConn), nil
}

func sendFile(socket *net.UnixConn, file *os.File) error {
	_, _, err := socket.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(file.Fd())), nil)
	return err
}

func receiveFile(socket *net.UnixConn) (*os.File, error) {
	rights := make([]byte, syscall.CmsgSpace(4))
	_, count, _, _, err := socket.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:count])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("the process inside has sent no network")
	}
	descriptors, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(descriptors[0])
	return os.NewFile(uintptr(descriptors[0]), "network"), nil
}
