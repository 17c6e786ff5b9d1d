/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents, and the YAML that kubectl makes of each: recorded from JSONToYAML() of
 * sigs.k8s.io/yaml 1.6.0. */
static const struct {
	const char *json, *yaml;
} recorded[] = {
	{"{\"k\":\"\"}", "k: \"\"\n"},
	{"{\"k\":\"~\"}", "k: \"~\"\n"},
	{"{\"k\":\"null\"}", "k: \"null\"\n"},
	{"{\"k\":\"Null\"}", "k: \"Null\"\n"},
	{"{\"k\":\"NULL\"}", "k: \"NULL\"\n"},
	{"{\"k\":\"nULL\"}", "k: nULL\n"},
	{"{\"k\":\"true\"}", "k: \"true\"\n"},
	{"{\"k\":\"True\"}", "k: \"True\"\n"},
	{"{\"k\":\"TRUE\"}", "k: \"TRUE\"\n"},
	{"{\"k\":\"tRUE\"}", "k: tRUE\n"},
	{"{\"k\":\"yes\"}", "k: \"yes\"\n"},
	{"{\"k\":\"Yes\"}", "k: \"Yes\"\n"},
	{"{\"k\":\"y\"}", "k: \"y\"\n"},
	{"{\"k\":\"Y\"}", "k: \"Y\"\n"},
	{"{\"k\":\"n\"}", "k: \"n\"\n"},
	{"{\"k\":\"no\"}", "k: \"no\"\n"},
	{"{\"k\":\"NO\"}", "k: \"NO\"\n"},
	{"{\"k\":\"on\"}", "k: \"on\"\n"},
	{"{\"k\":\"off\"}", "k: \"off\"\n"},
	{"{\"k\":\"OFF\"}", "k: \"OFF\"\n"},
	{"{\"k\":\"oN\"}", "k: oN\n"},
	{"{\"k\":\".inf\"}", "k: \".inf\"\n"},
	{"{\"k\":\"-.inf\"}", "k: \"-.inf\"\n"},
	{"{\"k\":\"+.INF\"}", "k: \"+.INF\"\n"},
	{"{\"k\":\".nan\"}", "k: \".nan\"\n"},
	{"{\"k\":\".NaN\"}", "k: \".NaN\"\n"},
	{"{\"k\":\".Nan\"}", "k: .Nan\n"},
	{"{\"k\":\"<<\"}", "k: <<\n"},
	{"{\"k\":\"=\"}", "k: =\n"},
	{"{\"k\":\"1\"}", "k: \"1\"\n"},
	{"{\"k\":\"-1\"}", "k: \"-1\"\n"},
	{"{\"k\":\"+1\"}", "k: \"+1\"\n"},
	{"{\"k\":\"0\"}", "k: \"0\"\n"},
	{"{\"k\":\"00\"}", "k: \"00\"\n"},
	{"{\"k\":\"007\"}", "k: \"007\"\n"},
	{"{\"k\":\"08\"}", "k: \"08\"\n"},
	{"{\"k\":\"0x1F\"}", "k: \"0x1F\"\n"},
	{"{\"k\":\"0X1f\"}", "k: \"0X1f\"\n"},
	{"{\"k\":\"0xg\"}", "k: 0xg\n"},
	{"{\"k\":\"0o17\"}", "k: \"0o17\"\n"},
	{"{\"k\":\"0O7\"}", "k: \"0O7\"\n"},
	{"{\"k\":\"0o8\"}", "k: 0o8\n"},
	{"{\"k\":\"017\"}", "k: \"017\"\n"},
	{"{\"k\":\"0b11\"}", "k: \"0b11\"\n"},
	{"{\"k\":\"0B1\"}", "k: \"0B1\"\n"},
	{"{\"k\":\"0b2\"}", "k: 0b2\n"},
	{"{\"k\":\"0b-1\"}", "k: \"0b-1\"\n"},
	{"{\"k\":\"0b+1\"}", "k: \"0b+1\"\n"},
	{"{\"k\":\"-0b1\"}", "k: \"-0b1\"\n"},
	{"{\"k\":\"+0b1\"}", "k: \"+0b1\"\n"},
	{"{\"k\":\"-0b+1\"}", "k: -0b+1\n"},
	{"{\"k\":\"1_000\"}", "k: \"1_000\"\n"},
	{"{\"k\":\"1__0\"}", "k: \"1__0\"\n"},
	{"{\"k\":\"_1\"}", "k: _1\n"},
	{"{\"k\":\"0x_1F\"}", "k: \"0x_1F\"\n"},
	{"{\"k\":\"0_1\"}", "k: \"0_1\"\n"},
	{"{\"k\":\"1e3\"}", "k: \"1e3\"\n"},
	{"{\"k\":\"1E+3\"}", "k: \"1E+3\"\n"},
	{"{\"k\":\"1e\"}", "k: 1e\n"},
	{"{\"k\":\"1.\"}", "k: \"1.\"\n"},
	{"{\"k\":\"1.5\"}", "k: \"1.5\"\n"},
	{"{\"k\":\".5\"}", "k: \".5\"\n"},
	{"{\"k\":\".\"}", "k: .\n"},
	{"{\"k\":\"+.5\"}", "k: \"+.5\"\n"},
	{"{\"k\":\"-.\"}", "k: -.\n"},
	{"{\"k\":\"1.e3\"}", "k: \"1.e3\"\n"},
	{"{\"k\":\".5e-3\"}", "k: \".5e-3\"\n"},
	{"{\"k\":\"1e999\"}", "k: 1e999\n"},
	{"{\"k\":\"-1e999\"}", "k: -1e999\n"},
	{"{\"k\":\"1e-999\"}", "k: \"1e-999\"\n"},
	{"{\"k\":\"99999999999999999999\"}", "k: \"99999999999999999999\"\n"},
	{"{\"k\":\"0xffffffffffffffff\"}", "k: \"0xffffffffffffffff\"\n"},
	{"{\"k\":\"0x1ffffffffffffffff\"}", "k: 0x1ffffffffffffffff\n"},
	{"{\"k\":\"-0x8000000000000000\"}", "k: \"-0x8000000000000000\"\n"},
	{"{\"k\":\"-0x8000000000000001\"}", "k: -0x8000000000000001\n"},
	{"{\"k\":\"1:30\"}", "k: \"1:30\"\n"},
	{"{\"k\":\"1:30.5\"}", "k: \"1:30.5\"\n"},
	{"{\"k\":\"1:60\"}", "k: 1:60\n"},
	{"{\"k\":\"1:5:59\"}", "k: \"1:5:59\"\n"},
	{"{\"k\":\"-1:30\"}", "k: \"-1:30\"\n"},
	{"{\"k\":\"+1:30:00.\"}", "k: \"+1:30:00.\"\n"},
	{"{\"k\":\"01:02\"}", "k: \"01:02\"\n"},
	{"{\"k\":\"1_0:30\"}", "k: \"1_0:30\"\n"},
	{"{\"k\":\"1:3_0\"}", "k: 1:3_0\n"},
	{"{\"k\":\"2026-01-01\"}", "k: \"2026-01-01\"\n"},
	{"{\"k\":\"2026-1-1\"}", "k: \"2026-1-1\"\n"},
	{"{\"k\":\"2026-13-01\"}", "k: 2026-13-01\n"},
	{"{\"k\":\"2026-02-30\"}", "k: 2026-02-30\n"},
	{"{\"k\":\"2024-02-29\"}", "k: \"2024-02-29\"\n"},
	{"{\"k\":\"2023-02-29\"}", "k: 2023-02-29\n"},
	{"{\"k\":\"2026-01-01T00:00:00Z\"}", "k: \"2026-01-01T00:00:00Z\"\n"},
	{"{\"k\":\"2026-01-01t00:00:00z\"}", "k: 2026-01-01t00:00:00z\n"},
	{"{\"k\":\"2026-01-01T1:2:3Z\"}", "k: \"2026-01-01T1:2:3Z\"\n"},
	{"{\"k\":\"2026-01-01T00:00:00+07:00\"}", "k: \"2026-01-01T00:00:00+07:00\"\n"},
	{"{\"k\":\"2026-01-01T00:00:00.123456789012Z\"}",
		"k: \"2026-01-01T00:00:00.123456789012Z\"\n"},
	{"{\"k\":\"2026-01-01T00:00:00,5Z\"}", "k: \"2026-01-01T00:00:00,5Z\"\n"},
	{"{\"k\":\"2026-01-01 00:00:00\"}", "k: \"2026-01-01 00:00:00\"\n"},
	{"{\"k\":\"2026-01-01  00:00:00.5\"}", "k: \"2026-01-01  00:00:00.5\"\n"},
	{"{\"k\":\"2026-01-01 00:00:00Z\"}", "k: 2026-01-01 00:00:00Z\n"},
	{"{\"k\":\"2026-01-01T24:00:00Z\"}", "k: 2026-01-01T24:00:00Z\n"},
	{"{\"k\":\"2026-01-01T00:00:00\"}", "k: 2026-01-01T00:00:00\n"},
	{"{\"k\":\"2026-01-01T00:00:00+25:00\"}", "k: 2026-01-01T00:00:00+25:00\n"},
	{"{\"k\":\"2026-01-01T00:00:00+24:60\"}", "k: \"2026-01-01T00:00:00+24:60\"\n"},
	{"{\"k\":\"2026-01-01T00:00:60Z\"}", "k: 2026-01-01T00:00:60Z\n"},
	{"{\"k\":\"2026-01-01 \"}", "k: '2026-01-01 '\n"},
	{"{\"k\":\"20266-01-01\"}", "k: 20266-01-01\n"},
	{"{\"k\":\"2026-\"}", "k: 2026-\n"},
	{"{\"k\":\"1234-5\"}", "k: 1234-5\n"},
	{"{\"k\":\"-\"}", "k: '-'\n"},
	{"{\"k\":\"- a\"}", "k: '- a'\n"},
	{"{\"k\":\"?\"}", "k: '?'\n"},
	{"{\"k\":\"? a\"}", "k: '? a'\n"},
	{"{\"k\":\"?a\"}", "k: ?a\n"},
	{"{\"k\":\":\"}", "k: ':'\n"},
	{"{\"k\":\"::\"}", "k: '::'\n"},
	{"{\"k\":\"a:\"}", "k: 'a:'\n"},
	{"{\"k\":\"a: b\"}", "k: 'a: b'\n"},
	{"{\"k\":\"a:b\"}", "k: a:b\n"},
	{"{\"k\":\"a #b\"}", "k: 'a #b'\n"},
	{"{\"k\":\"a#b\"}", "k: a#b\n"},
	{"{\"k\":\"#a\"}", "k: '#a'\n"},
	{"{\"k\":\"*a\"}", "k: '*a'\n"},
	{"{\"k\":\"&a\"}", "k: '&a'\n"},
	{"{\"k\":\"!a\"}", "k: '!a'\n"},
	{"{\"k\":\"|\"}", "k: '|'\n"},
	{"{\"k\":\"> a\"}", "k: '> a'\n"},
	{"{\"k\":\"%a\"}", "k: '%a'\n"},
	{"{\"k\":\"@a\"}", "k: '@a'\n"},
	{"{\"k\":\"`a\"}", "k: '`a'\n"},
	{"{\"k\":\"'\"}", "k: ''''\n"},
	{"{\"k\":\"it's\"}", "k: it's\n"},
	{"{\"k\":\"\\\"\"}", "k: '\"'\n"},
	{"{\"k\":\"[a]\"}", "k: '[a]'\n"},
	{"{\"k\":\"{a}\"}", "k: '{a}'\n"},
	{"{\"k\":\",\"}", "k: ','\n"},
	{"{\"k\":\"---\"}", "k: '---'\n"},
	{"{\"k\":\"--- a\"}", "k: '--- a'\n"},
	{"{\"k\":\"---a\"}", "k: '---a'\n"},
	{"{\"k\":\"...\"}", "k: '...'\n"},
	{"{\"k\":\"...a\"}", "k: '...a'\n"},
	{"{\"k\":\"-a\"}", "k: -a\n"},
	{"{\"k\":\"--a\"}", "k: --a\n"},
	{"{\"k\":\"a\\n\"}", "k: |\n  a\n"},
	{"{\"k\":\"a\\nb\"}", "k: |-\n  a\n  b\n"},
	{"{\"k\":\"a\\n\\n\"}", "k: |+\n  a\n\n"},
	{"{\"k\":\"\\n\"}", "k: |2+\n\n"},
	{"{\"k\":\"\\n\\n\"}", "k: |2+\n\n\n"},
	{"{\"k\":\"\\na\"}", "k: |2-\n\n  a\n"},
	{"{\"k\":\" a\\nb\"}", "k: |2-\n   a\n  b\n"},
	{"{\"k\":\"a \\nb\"}", "k: \"a \\nb\"\n"},
	{"{\"k\":\"a\\n b\"}", "k: |-\n  a\n   b\n"},
	{"{\"k\":\"a\\r\\nb\"}", "k: \"a\\r\\nb\"\n"},
	{"{\"k\":\"a\\tb\"}", "k: \"a\\tb\"\n"},
	{"{\"k\":\"\\t\"}", "k: \"\\t\"\n"},
	{"{\"k\":\" \"}", "k: ' '\n"},
	{"{\"k\":\"  \"}", "k: '  '\n"},
	{"{\"k\":\" a\"}", "k: ' a'\n"},
	{"{\"k\":\"a \"}", "k: 'a '\n"},
	{"{\"k\":\"inf\"}", "k: inf\n"},
	{"{\"k\":\"nan\"}", "k: nan\n"},
	{"{\"k\":\"Infinity\"}", "k: Infinity\n"},
	{"{\"k\":\"0x1p-2\"}", "k: 0x1p-2\n"},
	{"{\"k\":\"1p3\"}", "k: 1p3\n"},
	{"{\"k\":\"e3\"}", "k: e3\n"},
	{"{\"k\":\"1a\"}", "k: 1a\n"},
	{"{\"k\":\"5s\"}", "k: 5s\n"},
	{"{\"k\":\"10.0.0.1\"}", "k: 10.0.0.1\n"},
	{"{\"k\":\"1.2.3\"}", "k: 1.2.3\n"},
	{"{\"k\":\"0.\"}", "k: \"0.\"\n"},
	{"{\"k\":\"00.5\"}", "k: \"00.5\"\n"},
	{"{\"k\":\"+\"}", "k: +\n"},
	{"{\"k\":\"+-1\"}", "k: +-1\n"},
	{"{\"k\":\"--1\"}", "k: --1\n"},
	{"{\"k\":\"word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word word\"}",
		"k: word word word word word word word word word word word word word word word "
		"word\n  word word word word word word word word word word word word word word "
		"word word\n  word word word word word word word word\n"},
	{"{\"k\":\"word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word word \"}",
		"k: 'word word word word word word word word word word word word word word word "
		"word\n  word word word word word word word word word word word word word word "
		"word word\n  word word word word word word word word '\n"},
	{"{\"k\":\"word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word word: x\"}",
		"k: 'word word word word word word word word word word word word word word word "
		"word\n  word word word word word word word word word word word word word word "
		"word word\n  word word word word word word word word: x'\n"},
	{"{\"k\":\"word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word word's #\"}",
		"k: 'word word word word word word word word word word word word word word word "
		"word\n  word word word word word word word word word word word word word word "
		"word word\n  word word word word word word word word''s #'\n"},
	{"{\"k\":\"word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word word\\tword word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word\"}",
		"k: \"word word word word word word word word word word word word word word word "
		"word\n  word word word word word word word word word word word word word word "
		"word word\n  word word word word word word word word\\tword word word word word "
		"word word word\n  word word word word word word word word word word word word "
		"word word word word\n  word word word word word word word word word word word "
		"word word word word word\"\n"},
	{"{\"k\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y z "
	 " a   b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y z  "
	 "a   b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y z  a "
	 "  b end\"}",
		"k: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y "
		"z  a   b\n  "
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y z  "
		"a   b\n  "
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y z  "
		"a   b\n  end\n"},
	{"{\"k\":\"\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
	 "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
	 "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
	 "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
	 "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
	 "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
	 "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \"}",
		"k: '\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		"\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		"\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		"\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		"\303\251 \303\251 \303\251 \303\251\n  \303\251 \303\251 \303\251 \303\251 "
		"\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		"\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 '\n"},
	{"{\"k\":\"a\\nword word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word word word\"}",
		"k: |-\n  a\n  word word word word word word word word word word word word word "
		"word word word word word word word word word word word word word word word word "
		"word word word word word word word word word word word\n"},
	{"{\"k\":"
	 "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	 "xxxxxxxxxxxxxxxxxxxxxxxx\"}",
		"k: "
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"},
	{"{\"k\":\"k\342\200\250l\"}", "k: 'k\342\200\250  l'\n"},
	{"{\"k\":\"\357\273\277a b\"}", "k: \"\\uFEFF\\x61\\x20\\x62\"\n"},
	{"{\"k\":\"\302\240\"}", "k: \302\240\n"},
	{"{\"k\":\"emoji \360\237\230\200\"}", "k: \"emoji \\U0001F600\"\n"},
	{"{\"k\":\"tab\\there\"}", "k: \"tab\\there\"\n"},
	{"{\"k\":\"a\\n  b\\n\\nc\\n\"}", "k: |\n  a\n    b\n\n  c\n"},
	{"{\"k\":\" lead\\nb\"}", "k: |2-\n   lead\n  b\n"},
	{"{\"k\":\"\\n\\nx\\n\\n\"}", "k: |2+\n\n\n  x\n\n"},
	{"{\"k\":\"a\\nb \"}", "k: \"a\\nb \"\n"},
	{"{\"k\":\"end \\n\"}", "k: \"end \\n\"\n"},
	{"[[\"word word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word\"]]",
		"- - word word word word word word word word word word word word word word word "
		"word\n    word word word word word word word word word word word word word word "
		"word word\n    word word word word word word word word\n"},
	{"[[\"word word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word \"]]",
		"- - 'word word word word word word word word word word word word word word word "
		"word\n    word word word word word word word word word word word word word word "
		"word word\n    word word word word word word word word '\n"},
	{"[[\"word word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word: x\"]]",
		"- - 'word word word word word word word word word word word word word word word "
		"word\n    word word word word word word word word word word word word word word "
		"word word\n    word word word word word word word word: x'\n"},
	{"[[\"word word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word's #\"]]",
		"- - 'word word word word word word word word word word word word word word word "
		"word\n    word word word word word word word word word word word word word word "
		"word word\n    word word word word word word word word''s #'\n"},
	{"{\"y\":1}", "\"y\": 1\n"},
	{"{\"a: b\":1}", "'a: b': 1\n"},
	{"{\"\":1}", "\"\": 1\n"},
	{"{\"\\n\":1}", "? |2+\n\n: 1\n"},
	{"{\"a\\nb\":1}", "? |-\n  a\n  b\n: 1\n"},
	{"{\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
	 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\":1}",
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: 1\n"},
	{"{\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
	 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\":1}",
		"? "
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\n: 1\n"},
	{"{\"1\":1}", "\"1\": 1\n"},
	{"{\"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
	 "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
	 "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
	 "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
	 "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
	 "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
	 "\251\303\251\303\251\303\251\303\251\":1}",
		"? "
		"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
		"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
		"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
		"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
		"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
		"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
		"\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\n"
		": 1\n"},
	{"{\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
	 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\":[1,{\"a\":[]}],\"b\":{\"c\":{}}}",
		"b:\n  c: {}\n? "
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\n: - 1\n  - a: []\n"},
	{"[[],{},[[1,[2]],{\"x\":null}],true]",
		"- []\n- {}\n- - - 1\n    - - 2\n  - x: null\n- true\n"},
	{"{\"n\":[0,-1,1.5,1e-07,1e+20,1e+21,1234567.5,9223372036854775807,9223372036854775808,"
	 "18446744073709551616,-0.0,1000000.0,123456789.5]}",
		"\"n\":\n- 0\n- -1\n- 1.5\n- 1e-07\n- 1e+20\n- 1e+21\n- 1.2345675e+06\n- "
		"9223372036854775807\n- 9223372036854776000\n- 1.8446744073709552e+19\n- 0\n- "
		"1000000\n- 1.234567895e+08\n"},
	{"\"a string\"", "a string\n"},
	{"[]", "[]\n"},
	{"{}", "{}\n"},
	{"null", "null\n"},
	{"\"word word word word word word word word word word word word word word word word word "
	 "word word word word word word word word word word word word word word word word word "
	 "word word word word word word\"",
		"word word word word word word word word word word word word word word word word "
		"word\n  word word word word word word word word word word word word word word "
		"word word\n  word word word word word word word\n"},
	{"{\"item-10\":1,\"item-9\":1,\"item-\":1,\"b\":1,\"B\":1,\"_\":1,\"a.b\":1,\"a/"
	 "b\":1,\"a-b\":1,\"ab\":1,\"a\":1,\"\303\251\":1,\"item-09\":1,\"item-009\":1}",
		"_: 1\nB: 1\na: 1\na-b: 1\na.b: 1\na/b: 1\nab: 1\nb: 1\nitem-: 1\nitem-9: "
		"1\nitem-09: 1\nitem-009: 1\nitem-10: 1\n\303\251: 1\n"},
};
