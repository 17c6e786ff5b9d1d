// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"

	"go.uber.org/goleak"
)

// The connections of client-go's clients stay open for a while.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
}
