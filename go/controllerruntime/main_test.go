// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"testing"

	"go.uber.org/goleak"
)

// The connections of client-go's clients stay open for a while. controller-runtime's own watch of
// metadata leaves its filter now and then.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
}
