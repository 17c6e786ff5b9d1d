// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

type limitKind int

const (
	limitNumber limitKind = iota
	limitTime
	limitAge // compared with the creation of an object of that age
)

// limit is the right side of a comparison of fields.
type limit struct {
	kind   limitKind
	number *big.Float
	time   int64 // ns since 1970
}

func readLimit(key, text string) (l limit, err error) {
	if key == ageKey {
		l.kind = limitAge
		l.time, err = beforeNow(text)
		if err != nil {
			err = fmt.Errorf("%s: %w", ageKey, err)
		}
		return l, err
	}
	if number, ok := readQuantity(text); ok {
		return limit{kind: limitNumber, number: number}, nil
	}
	l.kind = limitTime
	if ago, isAgo := strings.CutPrefix(text, "now-"); isAgo || text == "now" {
		if !isAgo {
			ago = "0"
		}
		if l.time, err = beforeNow(ago); err == nil {
			return l, nil
		}
	}
	for _, whole := range []string{text, text + "T00:00:00Z"} {
		var ok bool
		if l.time, ok = readTime(whole); ok {
			return l, nil
		}
	}
	return l, fmt.Errorf("'%s' is compared with '%s': write a number (3, 500m, 1.5Gi), a time (2026-11-22, "+
		"2026-11-22T08:30:00Z) or a time ago (now-10m)", key, text)
}

func (l *limit) allows(op Op, text string) bool {
	order := 0
	if l.kind == limitNumber {
		number, ok := readQuantity(text)
		if !ok {
			return false
		}
		order = number.Cmp(l.number)
	} else {
		at, ok := readTime(text)
		if !ok {
			return false
		}
		order = cmp.Compare(at, l.time)
	}
	if l.kind == limitAge { // the later, the younger
		order = -order
	}
	switch op {
	case Greater:
		return order > 0
	case Less:
		return order < 0
	case GreaterEqual:
		return order >= 0
	}
	return order <= 0
}

// ---- durations and times ------------------------------------------------------------

var units = map[string]uint64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9}

func digitsOf(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}

// readDuration reads a duration as kinf.yaml has them: 10m, 1h30m, 2d.
func readDuration(text string) (uint64, error) {
	bad := fmt.Errorf("not a duration: '%s'; write one as 10m, 1h30m, 500ms or 0s", text)
	if text == "0" {
		return 0, nil
	}
	var sum uint64
	for rest := text; ; {
		n := digitsOf(rest)
		letters := strings.IndexAny(rest[n:], "0123456789")
		if letters < 0 {
			letters = len(rest) - n
		}
		number, err := strconv.ParseUint(rest[:n], 10, 64)
		unit := units[rest[n:n+letters]]
		if err != nil || unit == 0 || number > (math.MaxUint64-sum)/unit {
			return 0, bad
		}
		sum += number * unit
		if rest = rest[n+letters:]; rest == "" {
			return sum, nil
		}
	}
}

func beforeNow(duration string) (int64, error) {
	ago, err := readDuration(duration)
	return time.Now().UnixNano() - int64(min(ago, math.MaxInt64)), err
}

// readTime reads an RFC 3339 text. Years beyond the range of nanoseconds count as its ends.
func readTime(text string) (int64, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	switch seconds := t.Unix(); {
	case seconds < math.MinInt64/1_000_000_000:
		return math.MinInt64, true
	case seconds >= math.MaxInt64/1_000_000_000:
		return math.MaxInt64, true
	}
	return t.UnixNano(), true
}

// ---- quantities ---------------------------------------------------------------------

const (
	exponentMost = 400 // more is no quantity
	precision    = 64  // whole numbers of 64 bits are exact
)

func power(base int64, exponent int) *big.Float {
	return new(big.Float).SetPrec(precision).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(exponent)), nil))
}

// unitOf reads the suffix of a quantity: its worth is base to the exponent.
func unitOf(s string) (base int64, exponent int, ok bool) {
	switch {
	case s == "":
		return 10, 0, true
	case len(s) == 1 && strings.Contains("mun", s):
		return 1000, -strings.Index("mun", s) - 1, true
	case len(s) == 1 && strings.Contains("kMGTPE", s):
		return 1000, strings.Index("kMGTPE", s) + 1, true
	case len(s) == 2 && s[1] == 'i' && strings.Contains("KMGTPE", s[:1]):
		return 1024, strings.Index("KMGTPE", s[:1]) + 1, true
	case s[0] != 'e' && s[0] != 'E':
		return 0, 0, false
	}
	digits := strings.TrimLeft(s[1:], "+-")
	exponent, err := strconv.Atoi(s[1:])
	return 10, exponent, err == nil && len(s)-len(digits) <= 2 && max(exponent, -exponent) <= exponentMost
}

// readQuantity reads a number or a quantity: 9, -1.5, 100m, 1.5Gi, 1e3.
func readQuantity(text string) (*big.Float, bool) {
	rest := strings.TrimPrefix(text, "-")
	negative := rest != text
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	whole := rest[:digitsOf(rest)]
	rest = rest[len(whole):]
	fraction := ""
	if after, found := strings.CutPrefix(rest, "."); found {
		fraction = after[:digitsOf(after)]
		rest = after[len(fraction):]
	}
	base, exponent, ok := unitOf(rest)
	if !ok || whole+fraction == "" {
		return nil, false
	}
	worth, ok := new(big.Float).SetPrec(precision).SetString(whole + fraction)
	if !ok {
		return nil, false
	}
	worth.Quo(worth, power(10, len(fraction)))
	if exponent < 0 {
		worth.Quo(worth, power(base, -exponent))
	} else {
		worth.Mul(worth, power(base, exponent))
	}
	if negative {
		worth.Neg(worth)
	}
	return worth, true
}
