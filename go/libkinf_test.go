// SPDX-License-Identifier: Apache-2.0

//go:build cgo && libkinf

package kinf_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kinf"
	"kinf/internal/lab"
	"kinf/internal/libkinf"
)

// A reader of a store answers in texts, and libkinf's is the oracle.
type reader interface {
	Renew() error
	Event() uint64
	Get(feed, key string) (string, error)
	List(feed string, q kinf.Query, index, value string) (string, error)
	IndexValues(feed, index string) (string, error)
	Feeds(feed string) (string, error)
	Changes(ctx context.Context, cursor string, after uint64, enough func(string) bool) (string, error)
	Close()
}

// ours is the reader of this module.
type ours struct {
	store    *kinf.Store
	snapshot *kinf.Snapshot
}

func openOurs(path string) (reader, error) {
	store, err := kinf.Open(path, nil)
	if err != nil {
		return nil, err
	}
	s, err := store.Snapshot()
	if err != nil {
		store.Close()
		return nil, err
	}
	return ours{store, s}, nil
}

func openLibkinf(path string) (reader, error) {
	r, err := libkinf.Open(path)
	if err == nil {
		return r, nil
	}
	return nil, err
}

func openBoth(t testing.TB, path string) (a, b reader) {
	t.Helper()
	a, ours := openOurs(path)
	b, theirs := openLibkinf(path)
	if ours != nil || theirs != nil {
		t.Fatal(ours, theirs)
	}
	return a, b
}

func (r ours) Renew() error  { return r.snapshot.Renew() }
func (r ours) Event() uint64 { return r.snapshot.Event() }

func (r ours) Close() {
	r.snapshot.Close()
	r.store.Close()
}

func lineOfObject(o *kinf.Object) string {
	sum := fnv.New64a()
	_, _ = sum.Write(o.Raw())
	return fmt.Sprintf("%s %d %d %s %s %016x\n", o.Key, o.Feed, o.Event, o.UID, o.ResourceVersion, sum.Sum64())
}

func (r ours) Get(feed, key string) (string, error) {
	o, err := r.snapshot.Get(feed, key)
	if err != nil {
		return "", err
	}
	return lineOfObject(o), nil
}

func (r ours) List(feed string, q kinf.Query, index, value string) (string, error) {
	objects := r.snapshot.List(feed, q)
	if index != "" {
		objects = r.snapshot.ByIndex(feed, index, value, q)
	}
	var text strings.Builder
	for o, err := range objects {
		if err != nil {
			return "", err
		}
		text.WriteString(lineOfObject(o))
	}
	return text.String(), nil
}

func (r ours) IndexValues(feed, index string) (text string, err error) {
	values, err := r.snapshot.IndexValues(feed, index, "")
	for _, v := range values {
		text += fmt.Sprintf("%s %d\n", v.Value, v.Count)
	}
	return text, err
}

func (r ours) Feeds(feed string) (text string, err error) {
	states, err := r.store.Status(feed)
	for _, s := range states {
		text += fmt.Sprintf("%d %s %s %s %s %s '%s' %s %d %d %d %d %d %d %d %t %t\n", s.ID, s.Name,
			strings.TrimSuffix(s.Resource+"."+s.Group, "."), s.Kind, s.Namespace, s.State, s.Reason, s.ResourceVersion, s.Objects,
			s.Event, s.Lag, s.Lists, s.Watches, s.Events, s.Retries, s.Synced(), s.Namespaced)
	}
	return text, err
}

func linesOfEvent(e kinf.Event) string {
	what := map[kinf.EventType]string{kinf.Added: "ADDED ", kinf.Modified: "MODIFIED ", kinf.Deleted: "DELETED "}[e.Type]
	switch {
	case e.Type == kinf.Synced:
		return "SYNC\n"
	case e.Type == kinf.Modified:
		return what + lineOfObject(e.Object) + "OLD " + lineOfObject(e.Old)
	case e.Unknown:
		what = "MISSING "
	case e.Initial:
		what = "INITIAL "
	}
	return what + lineOfObject(e.Object)
}

func (r ours) Changes(ctx context.Context, cursor string, after uint64, enough func(string) bool) (text string, err error) {
	options := kinf.FollowOptions{Feed: "pods", Cursor: cursor, After: after, CommitByHand: true}
	f, err := r.store.Follow(ctx, options)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for !enough(text) {
		e, err := f.Next(ctx)
		if errors.Is(err, kinf.ErrLapsed) {
			text += "LAPPED\n"
			continue
		}
		if err == nil {
			text += linesOfEvent(e)
		}
		if err == nil && cursor != "" && !e.Initial {
			err = f.Commit()
		}
		if err != nil {
			return text, err
		}
	}
	return text, nil
}

// ---- questions to both ---------------------------------------------------------------

// An ask is a question to a reader.
type ask struct {
	what string
	fn   func(reader) (string, error)
}

// asks are the questions about feeds and their objects, as a reader has them, and further ones.
func asks(t testing.TB, r reader, names []string, further []question) (all []ask) {
	t.Helper()
	for _, feed := range names {
		further = append(further, question{feed: feed})
		keys, err := r.List(feed, kinf.Query{}, "", "")
		if err != nil && !errors.Is(err, kinf.ErrNoFeed) && !errors.Is(err, kinf.ErrNotYet) {
			t.Fatal(err)
		}
		for line := range strings.Lines(keys + "web/none \nnone \n") {
			key, _, _ := strings.Cut(line, " ")
			all = append(all, ask{"get " + feed + " " + key, func(r reader) (string, error) { return r.Get(feed, key) }})
		}
		for _, index := range []string{"label", "namespace", "node", "text", "pair"} {
			all = append(all, ask{"index " + feed + " " + index, func(r reader) (string, error) { return r.IndexValues(feed, index) }})
		}
	}
	for _, q := range further {
		all = append(all, ask{fmt.Sprintf("list %s %.200q", q.feed, q.words()),
			func(r reader) (string, error) { return r.List(q.feed, q.query, q.index, q.value) }})
	}
	return all
}

// An answer is a text, or an error.
type answer struct {
	text string
	err  error
}

func (a ask) of(r reader) answer {
	text, err := a.fn(r)
	if err != nil {
		text = ""
	}
	return answer{text, err}
}

// isLike tells whether libkinf's answer is the same, or an error of the same kind.
func (a answer) isLike(theirs answer) bool {
	var e *libkinf.Error
	return a.text == theirs.text && (a.err == nil && theirs.err == nil || errors.As(theirs.err, &e) && errors.Is(a.err, e.Kind()))
}

// differ shows from where two answers differ.
func differ(a, theirs answer) string {
	g, w := strings.SplitAfter(a.text, "\n"), strings.SplitAfter(theirs.text, "\n")
	for len(g) > 1 && len(w) > 1 && g[0] == w[0] {
		g, w = g[1:], w[1:]
	}
	return fmt.Sprintf("'%.300s' %v, not '%.300s' %v", strings.Join(g, ""), a.err, strings.Join(w, ""), theirs.err)
}

// renewBoth takes snapshots of one instant.
func renewBoth(t testing.TB, a, b reader) {
	t.Helper()
	for range 10000 {
		if ours, theirs := a.Renew(), b.Renew(); ours != nil || theirs != nil {
			t.Fatal(ours, theirs)
		}
		if a.Event() == b.Event() {
			return
		}
	}
	t.Fatal("there is always another event")
}

func compare(t testing.TB, a, b reader, all []ask) {
	t.Helper()
	for _, q := range all {
		if ours, theirs := q.of(a), q.of(b); !ours.isLike(theirs) {
			t.Errorf("%s: %s", q.what, differ(ours, theirs))
		}
	}
}

// compareStore compares all answers about a store, and the states of its feeds.
func compareStore(t testing.TB, w *lab.World, path string, further []question) {
	t.Helper()
	a, b := openBoth(t, path)
	defer a.Close()
	defer b.Close()
	renewBoth(t, a, b)
	feeds, err := a.(ours).snapshot.Feeds("")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"none"}
	for _, f := range feeds {
		names = append(names, f.Name)
	}
	compare(t, a, b, asks(t, a, slices.Compact(names), further))
	for _, name := range append(names, "") {
		q := ask{"states of " + name, func(r reader) (string, error) { return r.Feeds(name) }}
		w.Eventually(q.what, func() bool { // each looks at another moment
			return b.Renew() == nil && q.of(a).isLike(q.of(b))
		})
	}
}

// Each world of this package's tests is compared at its end, if it has a store.
func init() {
	lab.AtEnd = func(t testing.TB, w *lab.World) {
		if r, err := openOurs(w.Store); err == nil && !t.Failed() {
			r.Close()
			compareStore(t, w, w.Store, nil)
		}
	}
}

func TestLibkinfGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	w := synced(t, 200)
	texts(w)
	w.Put("secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"web","name":"one"}}`)
	w.Control("POST", "/faults", nil, `{"path": "/namespaces/barred/", "status": 403, "body": "{}"}`)
	w.Configure(feeds + `
- {resource: secrets, namespaces: [web, barred], objects: metadata}
- {resource: services, drop: [metadata.labels, spec]}
- {resource: gadgets.example.com}
`)
	w.WaitFor("services", "live")
	w.Eventually("the states", func() bool { return strings.Contains(string(w.Status()), "forbidden") })
	all := append(append(questions(), badQuestions()...), labels("services", "app=a")...)
	all = append(append(all, fields("services", "spec.type=a", "metadata.name=a")...), labels("secrets", "app=a", "!app")...)
	all = append(append(all, fields("secrets", "metadata.name=one", "type=x")...), question{feed: "secrets",
		query: kinf.Query{Namespace: "web"}}, question{feed: "secrets", query: kinf.Query{Namespace: "barred"}})
	compareStore(t, w, w.Store, all)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		w.Stop(signal)
		compareStore(t, w, w.Store, all)
		w.Run()
		w.WaitFor("pods", "live")
	}
	w.Stop(syscall.SIGTERM)
	compareStore(t, w, w.Copy("copy"), all)
}

// ---- damage --------------------------------------------------------------------------

// bytesOf chooses bytes of a file: in a database as many in each kind of page.
func bytesOf(whole []byte) func() int {
	kinds := map[byte][]int{}
	for at := 0; at+4096 <= len(whole); at += 4096 {
		if !bytes.Equal(whole[at:at+4096], make([]byte, 4096)) {
			kinds[whole[at+10]] = append(kinds[whole[at+10]], at)
		}
	}
	return func() int {
		for _, pages := range kinds { // in any order
			at := rand.Intn(4096)
			for at == 144 { // of a meta page: its number may become that of the state before the other's (FORMAT.md, Generations)
				at = rand.Intn(4096)
			}
			return pages[rand.Intn(len(pages))] + at
		}
		return rand.Intn(len(whole))
	}
}

// Whatever a damaged store gives is right. An answer that libkinf can't give is none of ours either, and
// the other way round, but where one of them reads more.
func TestLibkinfFindsTheSameDamage(t *testing.T) {
	t.Parallel()
	w := synced(t, 60)
	texts(w)
	touch(t, w, openStore(t, w.Store), 40)
	w.Stop(syscall.SIGTERM)
	copied := w.Copy("copy")
	a, b := openBoth(t, copied)
	after := a.Event() - 20
	all := append(asks(t, a, []string{"pods", "configmaps"}, asked), ask{"the changes", func(r reader) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
		defer cancel()
		text, _ := r.Changes(ctx, "", after, func(text string) bool {
			return strings.Count(text, "\n") > 2*20 || strings.Contains(text, "LAPPED")
		})
		text, _, _ = strings.Cut(text, "LAPPED")       // what follows is the state
		return strings.TrimPrefix(text, "SYNC\n"), nil // libkinf reads the first change before it
	}})
	compare(t, a, b, all)
	truth := make([]string, len(all))
	for i, q := range all {
		truth[i] = q.of(a).text
	}
	a.Close()
	b.Close()
	rounds, right, wrong, odd := 600, 0, 0, 0
	if testing.Short() {
		rounds = 50
	}
	for _, path := range []string{data(t, copied, "index"), data(t, copied, "journal"), copied + "/id", copied + "/index/CURRENT"} {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		place := bytesOf(whole)
		for range rounds {
			at, damaged := place(), bytes.Clone(whole)
			damaged[at] ^= byte(1) << rand.Intn(8)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			check := func(what string, ours, theirs answer, truth string) {
				isRight := func(a answer) bool {
					return a.err != nil || a.text == truth || what == "the changes" && strings.HasPrefix(truth, a.text)
				}
				switch same := ours.isLike(theirs); {
				case !isRight(ours) || !isRight(theirs) || !same && (ours.err != nil) == (theirs.err != nil):
					t.Errorf("%s, byte %d is %x: %s: %s", path, at, damaged[at], what, differ(ours, theirs))
				case !same:
					odd++
				case ours.err != nil:
					wrong++
				default:
					right++
				}
			}
			a, ours := openOurs(copied)
			b, theirs := openLibkinf(copied)
			check("open", answer{err: ours}, answer{err: theirs}, "")
			for i, q := range all {
				if a != nil && b != nil {
					check(q.what, q.of(a), q.of(b), truth[i])
				}
			}
			for _, r := range []reader{a, b} {
				if r != nil {
					r.Close()
				}
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d answers are right, %d fail, %d fail by one of the two", right, wrong, odd); odd*50 > wrong {
		t.Error("they don't find the same")
	}
}

// ---- kills ---------------------------------------------------------------------------

// readBoth is the process that TestLibkinfGivesTheSameAnswersDuringKills kills.
func readBoth(t *testing.T, path string) {
	a, b := openBoth(t, path)
	defer a.Close()
	defer b.Close()
	lasting := slices.DeleteFunc(questions(), func(q question) bool { return strings.HasPrefix(q.query.FieldSelector, "age") })
	for n := rand.Intn(1000); !t.Failed(); n++ {
		renewBoth(t, a, b)
		compare(t, a, b, asks(t, a, []string{"pods", "nodes", "configmaps"}[n%3:][:1], lasting[n%len(lasting):][:1]))
		fmt.Println("compared")
	}
}

func TestLibkinfGivesTheSameAnswersDuringKills(t *testing.T) {
	if path := os.Getenv("KINF_TEST_READ"); path != "" {
		readBoth(t, path)
		return
	}
	t.Parallel()
	w := synced(t, 200)
	store := openStore(t, w.Store)
	ctx, end := context.WithCancel(t.Context())
	compared := make(chan int)
	go func() {
		all := 0
		defer func() { compared <- all }()
		for ctx.Err() == nil {
			command := exec.Command(os.Args[0], "-test.run=TestLibkinfGivesTheSameAnswersDuringKills$")
			command.Env = append(os.Environ(), "KINF_TEST_READ="+w.Store)
			out, err := command.StdoutPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			said, n := "", 1+rand.Intn(100)
			for lines := bufio.NewScanner(out); n > 0 && lines.Scan(); {
				if lines.Text() == "compared" {
					n--
					all++
				} else {
					said += lines.Text() + "\n"
				}
			}
			_ = command.Process.Signal(syscall.SIGKILL)
			if err := command.Wait(); said != "" || n > 0 {
				t.Errorf("%v: %s", err, said)
				return
			}
		}
	}()
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		churn(t, w)
		touch(t, w, store, 1) // the last one that was killed runs again
	}
	end()
	t.Logf("%d times compared", <-compared)
}

// churn changes pods while the daemons are killed, the index is made again and the journal is compacted.
func churn(t testing.TB, w *lab.World) {
	t.Helper()
	w.Put("pods", pod("lost", "x"))
	for round, disturb := range []func(){
		func() { w.Kinf("rebuild-index") },
		func() { w.Kinf("compact") },
		func() { // what is deleted meanwhile is found missing by a list
			w.Stop(syscall.SIGKILL)
			w.Delete("pods", "web/lost")
			w.Control("POST", "/compact", nil, nil)
			w.Run()
		},
		func() { _ = syscall.Kill(w.Processes()["reflector"], syscall.SIGKILL) },
		func() { _ = syscall.Kill(w.Processes()["processor"], syscall.SIGKILL) },
	} {
		if round == 3 && testing.Short() {
			return
		}
		touchPods(t, w, 40)
		w.Put("pods", pod(fmt.Sprint("p", round), "a"))
		disturb()
		for n := range 10 {
			touchPods(t, w, 2)
			w.Put("pods", pod(fmt.Sprint("p", round), fmt.Sprint(n)))
		}
		w.Delete("pods", fmt.Sprintf("web/p%d", round))
		w.WaitFor("pods", "live")
	}
}

// ---- changes -------------------------------------------------------------------------

// Three see the same changes: our follower, libkinf's, and those that take turns with one cursor.
func TestLibkinfFollowsAlike(t *testing.T) {
	t.Parallel()
	w := synced(t, 100)
	a, b := openBoth(t, w.Store)
	defer a.Close()
	defer b.Close()
	begin := a.Event()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	defer cancel()
	if _, err := a.Changes(ctx, "shared", 0, func(text string) bool { return strings.HasSuffix(text, "SYNC\n") }); err != nil {
		t.Fatal(err)
	}
	hasLast := func(text string) bool { return strings.Contains(text, "ADDED web/last ") }
	inTurns := func() (text string, err error) {
		for turn := 0; err == nil && !hasLast(text); turn++ {
			more, n := "", rand.Intn(20)
			more, err = []reader{a, b}[turn%2].Changes(ctx, "shared", 0, func(text string) bool {
				return hasLast(text) || strings.Count(text, "\n") > n
			})
			text += more
		}
		return text, err
	}
	results := make(chan answer, 3)
	for _, read := range []func() (string, error){inTurns, func() (string, error) { return a.Changes(ctx, "", begin, hasLast) },
		func() (string, error) { return b.Changes(ctx, "", begin, hasLast) }} {
		go func() {
			text, err := read()
			results <- answer{strings.ReplaceAll(text, "SYNC\n", ""), err}
		}()
	}
	churn(t, w)
	w.Put("pods", pod("last", "x"))
	first := <-results
	for range 2 {
		if other := <-results; other != first || first.err != nil {
			t.Error(differ(other, first))
		}
	}
	if n := strings.Count(first.text, "\n"); n < 100 || !strings.Contains(first.text, "\nMISSING ") || strings.Contains(first.text, "LAPPED") {
		t.Errorf("%d lines: %.1000s", n, first.text)
	}
}
