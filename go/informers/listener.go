// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kinf"
)

const pageSize = 200 // objects read from one snapshot for a list

// note is what a listener is told: a change, to list all objects, or to give all again.
type note struct {
	delivery     *delivery
	list, resync bool
	from         position // a list shows at least this
}

// delivery is a change, decoded once for all listeners.
type delivery struct {
	*change
	once     sync.Once
	old, new any
	err      error
}

// decode makes the objects that handlers get.
func (d *delivery) decode(i *Informer) error {
	d.once.Do(func() {
		c := d.change
		if c.known {
			d.old, d.err = i.last(c)
			if errors.Is(d.err, errRefused) {
				unknown := *c
				unknown.old = nil
				d.old, d.err = i.last(&unknown)
			}
			i.objects.remove(i, c.was)
		}
		if c.new != nil && d.err == nil {
			d.new, d.err = i.shared(c.at, c.new)
		}
	})
	return d.err
}

// shared gives an object that handlers get, and reads if there are any.
func (i *Informer) shared(at position, o *kinf.Object) (any, error) {
	if object := i.objects.get(i, at); object != nil {
		return object, nil
	}
	if !i.wasRead.Load() {
		return i.decoder.object(o)
	}
	object, err := i.decoder.object(o.Apart())
	if err == nil {
		object = i.objects.put(i, at, o, object)
	}
	return object, err
}

// last gives the last state of an object: a tombstone if it was deleted unseen.
func (i *Informer) last(c *change) (object any, err error) {
	if c.old == nil || c.new != nil {
		object = i.objects.get(i, c.was)
	}
	switch {
	case object != nil:
	case c.old == nil && c.new != nil:
		if object, err = i.decoder.object(c.new); err != nil {
			return nil, err
		}
		if accessor, ok := object.(metav1.Object); ok { // handlers that look for changes have to find one
			accessor.SetResourceVersion("")
			accessor.SetGeneration(0)
			accessor.SetLabels(nil)
			accessor.SetAnnotations(nil)
		}
	case c.old == nil:
		object = i.decoder.empty(c.key)
	default:
		if object, err = i.decoder.object(c.old); err != nil {
			return nil, err
		}
	}
	if c.new == nil && (c.missed || c.old == nil) {
		return cache.DeletedFinalStateUnknown{Key: c.key, Obj: object}, nil
	}
	return object, nil
}

// listener calls one handler, in a goroutine of its own.
type listener struct {
	informer *Informer
	handler  cache.ResourceEventHandler
	logger   klog.Logger
	period   time.Duration // of resyncs, under Informer.mu as is due
	due      time.Time
	synced   chan struct{}
	finished chan struct{}

	mu     sync.Mutex
	added  *sync.Cond
	queue  []note
	closed bool

	at     position // the handler knows all changes up to here
	listed []page   // what it was shown ahead of the changes, in the order of keys
	ahead  position // the newest of listed

	panicked bool // the last call did
}

// page says that objects up to a key were shown as of a position.
type page struct {
	last string // "": all further ones
	at   position
}

func newListener(i *Informer, handler cache.ResourceEventHandler, logger klog.Logger) *listener {
	l := &listener{informer: i, handler: handler, logger: logger, synced: make(chan struct{}), finished: make(chan struct{})}
	l.added = sync.NewCond(&l.mu)
	return l
}

func (l *listener) HasSynced() bool                     { return cache.IsDone(l) }
func (l *listener) HasSyncedChecker() cache.DoneChecker { return l }
func (l *listener) Name() string {
	return fmt.Sprintf("%s + event handler %T", informerSynced{l.informer}.Name(), l.handler)
}
func (l *listener) Done() <-chan struct{} { return l.synced }

// ShutdownChan serves cache.ShutDownEventHandler.
func (l *listener) ShutdownChan() <-chan struct{} { return l.finished }

func (l *listener) add(n note) {
	l.mu.Lock()
	l.queue = append(l.queue, n)
	l.mu.Unlock()
	l.added.Signal()
}

// isDue tells at a check whether a resync is due. The next one is due a period after this one was, since
// checks come a little early or late. The caller holds Informer.mu.
func (l *listener) isDue(now time.Time) bool {
	if l.period == 0 || now.Before(l.due) {
		return false
	}
	if l.due = l.due.Add(l.period); l.due.Before(now) {
		l.due = now.Add(l.period) // the first one, or after a sleep
	}
	return true
}

// close ends the listener after the call that it is in.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.added.Signal()
}

func (l *listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// isPatient lets reads for the handler wait until the listener is closed.
func (l *listener) isPatient(time.Duration) bool { return !l.isClosed() }

// take waits for notes; none: the listener was closed.
func (l *listener) take() []note {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.added.Wait()
	}
	if l.closed {
		return nil
	}
	notes := l.queue
	l.queue = nil
	return notes
}

func (l *listener) run() {
	defer close(l.finished)
	for notes := l.take(); notes != nil; notes = l.take() {
		for n := range notes {
			if l.isClosed() {
				return
			}
			l.act(&notes[n])
			notes[n] = note{}
		}
	}
}

func (l *listener) act(n *note) {
	switch {
	case n.list:
		l.list(n.from)
	case n.resync:
		l.giveAgain()
	default:
		l.tell(n.delivery)
	}
}

// call calls the handler. A panic in it ends the program. If apimachinery is told otherwise, the call
// counts, and the next one waits for a second, as in client-go.
func (l *listener) call(at position, fn func(cache.ResourceEventHandler)) {
	if l.panicked {
		time.Sleep(time.Second)
	}
	l.panicked = true
	defer utilruntime.HandleCrashWithLogger(l.logger)
	l.informer.show(at)
	fn(l.handler)
	l.panicked = false
}

func (l *listener) tell(d *delivery) {
	if l.wasShown(d.change) {
		return
	}
	l.at = d.at
	if err := d.decode(l.informer); err != nil {
		utilruntime.HandleErrorWithLogger(l.logger, err, "An event can't be decoded", "key", d.key)
		return
	}
	l.call(d.at, func(handler cache.ResourceEventHandler) {
		switch {
		case d.new == nil:
			handler.OnDelete(d.old)
		case d.known:
			handler.OnUpdate(d.old, d.new)
		default:
			handler.OnAdd(d.new, false)
		}
	})
}

// wasShown tells whether a list has shown a change already.
func (l *listener) wasShown(c *change) bool {
	if l.listed == nil {
		return false
	}
	if l.ahead.before(c.at) {
		l.listed = nil
		return false
	}
	n := sort.Search(len(l.listed), func(n int) bool { return l.listed[n].last == "" || c.key <= l.listed[n].last })
	return n < len(l.listed) && !l.listed[n].at.before(c.at)
}

// list gives all objects as added, in pages, each as new as the store is then.
func (l *listener) list(from position) {
	l.listed, l.ahead, l.at = nil, from, from
	after := ""
	for more := true; more && !l.isClosed(); {
		objects, shown, err := l.informer.page(l.isPatient, after, from)
		if err != nil {
			utilruntime.HandleErrorWithLogger(l.logger, err, "The store can't be listed", "scope", l.informer.scope.String())
			time.Sleep(backoffLeast)
			continue
		}
		more, after = shown.last != "", shown.last
		l.listed = append(l.listed, shown)
		if l.ahead.before(shown.at) {
			l.ahead = shown.at
		}
		for _, o := range objects {
			if l.isClosed() {
				return
			}
			l.give(o, shown.at.epoch, shown.at, func(handler cache.ResourceEventHandler, object any) { handler.OnAdd(object, true) })
		}
	}
	if !l.isClosed() {
		close(l.synced)
	}
}

// give calls the handler with an object that is there, as of a position.
func (l *listener) give(o *kinf.Object, epoch int, at position, fn func(cache.ResourceEventHandler, any)) {
	seen := position{epoch, o.Event}
	object, err := l.informer.shared(seen, o)
	if err != nil {
		utilruntime.HandleErrorWithLogger(l.logger, err, "An object can't be decoded", "key", o.Key)
		return
	}
	if l.at.before(seen) {
		l.informer.indexes.shown(o.Key, seen, object)
	}
	l.call(at, func(handler cache.ResourceEventHandler) { fn(handler, object) })
}

// giveAgain gives each object that did not change since the handler's last event as an update. The
// others are still to come.
func (l *listener) giveAgain() {
	after := ""
	for more := true; more && !l.isClosed(); {
		objects, shown, err := l.informer.page(l.isPatient, after, l.at)
		if err != nil {
			utilruntime.HandleErrorWithLogger(l.logger, err, "The store can't be listed", "scope", l.informer.scope.String())
			return
		}
		more, after = shown.last != "", shown.last
		for _, o := range objects {
			if at := (position{shown.at.epoch, o.Event}); l.at.before(at) && l.ahead.before(at) {
				continue
			}
			if l.isClosed() {
				return
			}
			l.give(o, shown.at.epoch, position{}, func(handler cache.ResourceEventHandler, object any) { handler.OnUpdate(object, object) })
		}
	}
}

// page reads the objects after a key, as of a position that is not before the one given.
func (i *Informer) page(patient patience, after string, from position) (objects []*kinf.Object, shown page, err error) {
	err = i.read(patient, func(s *kinf.Snapshot, f *kinf.Feed, now position) error {
		if now.before(from) {
			return errBehind
		}
		objects, shown = nil, page{at: now}
		n := 0
		query := i.scope.narrow(kinf.Query{Namespace: i.scope.Namespace, After: after, Limit: pageSize})
		for object, err := range s.List(f.Name, query) {
			if err != nil {
				return err
			}
			if n++; n == pageSize {
				shown.last = strings.Clone(object.Key) // it shares the memory of the record
			}
			selected, err := i.scope.selects(object)
			if err != nil {
				return err
			}
			if selected {
				objects = append(objects, object)
			}
		}
		return nil
	})
	if errors.Is(err, kinf.ErrNoFeed) {
		err = fmt.Errorf("%w: %w", ErrNotCovered, err)
	}
	return objects, shown, err
}
