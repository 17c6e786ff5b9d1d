// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package lab makes stores for tests: the tree's simulated cluster and daemons.
package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// build returns the directory of the tree's programs: $KINF_BUILD, else build/release.
func build() string {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "../../..")
	if given := os.Getenv("KINF_BUILD"); given != "" {
		if filepath.IsAbs(given) {
			return given
		}
		return filepath.Join(root, given)
	}
	return filepath.Join(root, "build/release")
}

func simulatorBuild() string {
	if given := os.Getenv("KINF_SIMULATOR_BUILD"); given != "" {
		return filepath.Join(build(), "../..", given)
	}
	return build()
}

// A World is a simulated cluster and a store of it.
type World struct {
	tb        testing.TB
	Directory string
	Store     string
	control   string
	config    string
	env       []string
	daemons   *exec.Cmd
}

// AtEnd, if it is set, is called with each world at the end of its test.
var AtEnd func(testing.TB, *World)

// New starts a cluster with pods, and `kinf run` on a kinf.yaml with the feeds given as YAML.
func New(tb testing.TB, pods int, feeds string) *World {
	tb.Helper()
	w := prepare(tb)
	w.start(w.startSimulator(pods), feeds)
	return w
}

// Beside starts `kinf run` for the API server at an address.
func Beside(tb testing.TB, api, feeds string) *World {
	tb.Helper()
	w := prepare(tb)
	w.start(api, feeds)
	return w
}

func prepare(tb testing.TB) *World {
	tb.Helper()
	for _, program := range []string{build() + "/kinf", simulatorBuild() + "/kinf-simulator"} {
		if _, err := os.Stat(program); err != nil {
			tb.Skipf("no %s: build the tree first", program)
		}
	}
	directory, err := os.MkdirTemp("", "kinf-go-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(directory) })
	return &World{tb: tb, Directory: directory, Store: directory + "/store", config: directory + "/kinf.yaml"}
}

func (w *World) start(api, feeds string) {
	directory := w.Directory
	kubeconfig := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "u", "user": {}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, api)
	w.write("kubeconfig", kubeconfig)
	w.configure(feeds)
	if err := os.Mkdir(directory+"/run", 0o700); err != nil {
		w.tb.Fatal(err)
	}
	w.env = append(os.Environ(), "HOME="+directory, "KUBECONFIG="+directory+"/kubeconfig", "KINF_STORE="+w.Store,
		"KINF_RUNTIME_DIR="+directory+"/run", "KINF_CONFIG="+w.config, "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=",
		"http_proxy=", "HTTP_PROXY=", "https_proxy=", "HTTPS_PROXY=")
	w.Run()
	if AtEnd != nil {
		w.tb.Cleanup(func() { AtEnd(w.tb, w) })
	}
}

func (w *World) write(name, text string) {
	if err := os.WriteFile(w.Directory+"/"+name, []byte(text), 0o600); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *World) configure(feeds string) {
	w.write("kinf.yaml", "cluster: {kubeconfig: "+w.Directory+"/kubeconfig}\nstore: "+w.Store+"\nfeeds:\n"+feeds)
}

// Configure changes the feeds of the running daemons.
func (w *World) Configure(feeds string) {
	w.configure(feeds)
	_ = syscall.Kill(w.daemons.Process.Pid, syscall.SIGHUP)
}

func (w *World) startSimulator(pods int) string {
	var out buffer
	command := exec.Command(simulatorBuild()+"/kinf-simulator", "--port", "0", "--control-port", "0",
		"--pods", fmt.Sprint(pods))
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	listening := regexp.MustCompile(`listening on \S+:(\d+)\ncontrol on \S+:(\d+)\n`)
	var found []string
	w.Eventually("the simulator", func() bool {
		found = listening.FindStringSubmatch(out.String())
		return found != nil
	})
	w.control = "http://127.0.0.1:" + found[2]
	return "http://127.0.0.1:" + found[1]
}

// Run starts the daemons.
func (w *World) Run() {
	w.daemons = exec.Command(build()+"/kinf", "run", "--config", w.config, "--runtime-dir", w.Directory+"/run")
	w.daemons.Env = w.env
	w.daemons.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.Create(w.Directory + "/kinf-run.err")
	if err != nil {
		w.tb.Fatal(err)
	}
	defer out.Close()
	w.daemons.Stdout, w.daemons.Stderr = out, out
	if err := w.daemons.Start(); err != nil {
		w.tb.Fatal(err)
	}
	daemons := w.daemons
	w.tb.Cleanup(func() {
		if daemons == w.daemons {
			w.Stop(syscall.SIGTERM)
		}
	})
}

// Stop ends the daemons by a signal to their group.
func (w *World) Stop(signal syscall.Signal) {
	if w.daemons == nil {
		return
	}
	_ = syscall.Kill(-w.daemons.Process.Pid, signal)
	_ = w.daemons.Wait()
	w.daemons = nil
}

// Patience is how long a test waits for a state, on a machine that other work keeps busy.
const Patience = 120 * time.Second

// Eventually waits until check holds.
func (w *World) Eventually(what string, check func() bool) {
	w.tb.Helper()
	for end := time.Now().Add(Patience); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(w.Directory + "/kinf-run.err")
			w.tb.Fatalf("%s: not within %v\n%s", what, Patience, log[max(0, len(log)-2000):])
		}
	}
}

// WaitFor waits until a feed is in a state: `kinf wait`.
func (w *World) WaitFor(feed, state string) {
	w.tb.Helper()
	w.Kinf("wait", feed, "--for", state, "--timeout", Patience.String())
}

// Kinf runs the kinf command.
func (w *World) Kinf(words ...string) []byte {
	w.tb.Helper()
	command := exec.Command(build()+"/kinf", words...)
	command.Env = w.env
	var errors bytes.Buffer
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		w.tb.Fatalf("kinf %s: %v\n%s", strings.Join(words, " "), err, errors.Bytes())
	}
	return out
}

// KinfError runs a kinf command that fails, and returns what it says.
func (w *World) KinfError(words ...string) string {
	w.tb.Helper()
	command := exec.Command(build()+"/kinf", words...)
	command.Env = w.env
	var errors bytes.Buffer
	command.Stderr = &errors
	if out, err := command.Output(); err == nil {
		w.tb.Fatalf("kinf %s: it succeeded\n%s", strings.Join(words, " "), out)
	}
	return errors.String()
}

// Control calls the simulator's control port.
func (w *World) Control(method, path string, query url.Values, body any) []byte {
	w.tb.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		made, err := json.Marshal(body)
		if err != nil {
			w.tb.Fatal(err)
		}
		text = string(made)
	}
	request, err := http.NewRequest(method, w.control+path+"?"+query.Encode(), strings.NewReader(text))
	if err != nil {
		w.tb.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.tb.Fatal(err)
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		w.tb.Fatalf("%s %s: %d %v %s", method, path, answer.StatusCode, err, out)
	}
	return out
}

// Put creates or changes an object.
func (w *World) Put(resource string, object any) {
	w.tb.Helper()
	w.Control("PUT", "/objects", url.Values{"resource": {resource}}, object)
}

// Delete deletes an object.
func (w *World) Delete(resource, key string) {
	w.tb.Helper()
	w.Control("DELETE", "/objects/"+url.PathEscape(key), url.Values{"resource": {resource}}, nil)
}

// Copy copies the store.
func (w *World) Copy(name string) string {
	w.tb.Helper()
	to := w.Directory + "/" + name
	if out, err := exec.Command("cp", "-a", "--sparse=always", w.Store, to).CombinedOutput(); err != nil {
		w.tb.Fatalf("cp: %v %s", err, out)
	}
	return to
}

// Processes returns the pids of the daemons that `kinf run` has started, by name.
func (w *World) Processes() map[string]int {
	pids := map[string]int{}
	for _, role := range []string{"reflector", "processor"} {
		text, _ := os.ReadFile(w.Store + "/" + role + ".lock")
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			pids[role] = pid
		}
	}
	return pids
}

// Status returns what `kinf status` prints as JSON, whatever it thinks of it.
func (w *World) Status() []byte {
	w.tb.Helper()
	command := exec.Command(build()+"/kinf", "status", "-o", "json")
	command.Env = w.env
	out, err := command.Output()
	if len(out) == 0 {
		w.tb.Fatalf("kinf status: %v", err)
	}
	return out
}
