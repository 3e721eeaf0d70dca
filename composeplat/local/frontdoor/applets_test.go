package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestSetfattrSetsAndRemovesAnAttribute(t *testing.T) {
	folder := t.TempDir()
	if known, err := runApplet("setfattr", []string{"-n", "user.mark", "-v", "1", folder}); !known || err != nil {
		t.Skip("no attributes here:", err)
	}
	value := make([]byte, 8)
	if size, err := syscall.Getxattr(folder, "user.mark", value); err != nil || string(value[:size]) != "1" {
		t.Fatal(size, err)
	}
	if _, err := runApplet("setfattr", []string{"-x", "user.mark", folder}); err != nil {
		t.Fatal(err)
	}
	if _, err := runApplet("setfattr", []string{"-x", "user.mark", folder}); !errors.Is(err, syscall.ENODATA) {
		t.Fatal(err)
	}
}

func TestFlockWaitsForTheLockOfAnotherDescriptor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	open := func() *os.File {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first, second := open(), open()
	defer second.Close()
	flock := func(file *os.File) error {
		_, err := runApplet("flock", []string{strconv.Itoa(int(file.Fd()))})
		return err
	}
	if err := flock(first); err != nil {
		t.Fatal(err)
	}
	locked := make(chan error)
	go func() { locked <- flock(second) }()
	select {
	case <-locked:
		t.Fatal("two have the lock")
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
}

func TestOtherArgumentsAreRefused(t *testing.T) {
	for _, arguments := range [][]string{{}, {"x"}, {"-u", "9"}} {
		if known, err := runApplet("flock", arguments); !known || err == nil {
			t.Error(arguments, known, err)
		}
	}
	if known, err := runApplet("setfattr", []string{"-d", "x", "y"}); !known || err == nil {
		t.Error(known, err)
	}
	if known, _ := runApplet("frontdoor", []string{"pause"}); known {
		t.Error("frontdoor is no applet")
	}
}
