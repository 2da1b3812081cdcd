// What bash makes of braces, quotes, functions and changed values. Each expectation was asked of
// bash 5.2.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/export/shell/shell_text.h"
#include "tests/planner/export/shell_reading.h"

namespace shardwise {
namespace {

using test::notes_of;
using test::problem_of;
using test::read;
using test::texts_of;
using test::words_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ShellWords, ReadsQuotesBehindADollar) {
  EXPECT_THAT(words_of("run $'a\\tb\\n' $'it\\'s' $'\\\\' $'\\\"\\?'"),
              ElementsAre("a\tb\n", "it's", "\\", "\"?"));
  EXPECT_THAT(
      words_of("run $'\\x41\\x4a2' $'\\101\\0621' $'\\u00e9\\u20AC\\U0001F600' $'\\xc3\\xa9'"),
      ElementsAre("AJ2", "A21", "\u00e9\u20ac\U0001F600", "\u00e9"));
  EXPECT_THAT(words_of("run $'a\\qb\\xg\\u' $'a\\0b'c x$''y $''"),
              ElementsAre("a\\qb\\xg\\u", "ac", "xy", ""));
  EXPECT_THAT(words_of("V='v w'\nrun $\"a $V\" \"$'b'\" $'$V' $'x'{1,$'2,3'}"),
              ElementsAre("a v w", "$'b'", "$V", "x1", "x2,3"));
  // Characters that steer a terminal stay as they are written.
  EXPECT_THAT(words_of("RED=$'\\033[0;31m'\nrun x$'\\r' \"$RED\" $'\\xff' $'\\UFFFFFFFF'"),
              ElementsAre("x$'\\r'", "$'\\033[0;31m'", "$'\\xff'", "$'\\UFFFFFFFF'"));
  EXPECT_THAT(words_of("A=$(echo $'it\\'s )')\nrun x"), ElementsAre("x"));
  EXPECT_THAT(problem_of("run $'x\\'"), HasSubstr("run.sh:1: a quote that $' opens is not closed"));
}

TEST(ShellWords, ExpandsBraces) {
  EXPECT_THAT(words_of("run x{a,b} {a,b}{1,2} p{,q}"),
              ElementsAre("xa", "xb", "a1", "a2", "b1", "b2", "p", "pq"));
  EXPECT_THAT(words_of("run {1..4} {3..1} {01..10..4} {-1..1} {1..3..2} {a..e..2} {5..1..-2}"),
              ElementsAre("1", "2", "3", "4", "3", "2", "1", "01", "05", "09", "-1", "0", "1", "1",
                          "3", "a", "c", "e", "5", "3", "1"));
  EXPECT_THAT(
      words_of("run {a,b{1,2}} {a{b,c}d} {a},b} {a,{b,c} a{1..{2,3}}"),
      ElementsAre("a", "b1", "b2", "{abd}", "{acd}", "a}", "b", "{a,b", "{a,c", "a1..2", "a1..3"));
  EXPECT_THAT(words_of("run {} {a} {} x{} {1..x} {1..} {1..2..x} {a..3} {1.5..2} {,"),
              ElementsAre("{}", "{a}", "{}", "x{}", "{1..x}", "{1..}", "{1..2..x}", "{a..3}",
                          "{1.5..2}", "{,"));
  EXPECT_THAT(words_of("run '{a,b}' \"{a,b}\" \\{a,b} {a\\,b} {\"a,b\",c} {1..\"3\"}"),
              ElementsAre("{a,b}", "{a,b}", "{a,b}", "{a,b}", "a,b", "c", "{1..3}"));
  EXPECT_THAT(words_of("N=3; A=({x,y}_$N)\nB={a,b}\nrun \"${A[@]}\" $B {1..$N} ${B}{1,2}"),
              ElementsAre("x_3", "y_3", "{a,b}", "{1..3}", "{a,b}1", "{a,b}2"));
  EXPECT_THAT(words_of("export A={a,b}\n[[ {a,b} = '{a,b}' ]] && X=1\nrun $A $X"),
              ElementsAre("b", "1"));
}

TEST(ShellWords, RefusesMoreBracesThanMemoryHas) {
  for (const char* word : {"{1..1000000000}", "{1..9223372036854775807}",
                           "{a..z}{1..9}{1..999}{1..99}", "{1..999}{1..999}{1..999}"}) {
    EXPECT_EQ(problem_of(fmt::format("run {}", word)),
              "run.sh:1: variables and braces make more than 1 MB of words\n"
              "    give the command as the shell runs it\n1 problem, nothing was run\n")
        << word;
  }
  std::string deep = "x";
  for (int i = 0; i < 150; ++i) deep = "{a," + deep + "}";
  EXPECT_THAT(problem_of("run " + deep), HasSubstr("braces in braces, more than 100 deep"));
  EXPECT_THAT(problem_of("run " + std::string(300, '{') + "}"), HasSubstr("more than 200 braces"));
  EXPECT_THAT(words_of("run {9223372036854775806..9223372036854775807}"),
              ElementsAre("9223372036854775806", "9223372036854775807"));
}

TEST(ShellWords, KeepsPatternsOfFileNamesAndSaysSo) {
  EXPECT_THAT(words_of("run data/*.bin '*' \\* \"?\" [ab].py"),
              ElementsAre("data/*.bin", "*", "*", "?", "[ab].py"));
  EXPECT_EQ(notes_of("run '*' \\* \"?\" [ a[ \"$X\" ${A[@]}"), "");
  EXPECT_THAT(notes_of("D='data/*'\nrun --x\nrun --x --data $D --y"),
              HasSubstr("run.sh:1: data/* stays as it is written: no file is looked for"));
  EXPECT_EQ(notes_of("D='data/*'\nrun --x \"$D\""), "");
}

TEST(ShellWords, KeepsTheFilesThatAScriptWrites) {
  const auto file = [](const std::string& script) {
    const ShellCommand made = read(script);
    return made.files.size() == 1 ? made.files[0].name + ":" + made.files[0].text : "";
  };
  EXPECT_EQ(file("N=2\ncat > a.json <<EOF\n{\"n\": $N, \"s\": \"\\$N\"}\nEOF\nrun --x"),
            "a.json:{\"n\": 2, \"s\": \"$N\"}\n");
  EXPECT_EQ(file("N=2\ncat <<'EOF' >| a.json\n$N\nEOF\nrun --x"), "a.json:$N\n");
  EXPECT_EQ(file("tee -a a >/dev/null <<E\nx\nE\n"), "");  // what was in it is not known
  EXPECT_EQ(file("D=d\ntee $D/a <<-E\n\tx\n\tE\nrun --x"), "d/a:x\n");
  EXPECT_EQ(file("echo \"h1 slots=8\" > h\necho h2   slots=4 >> h\nrun --x"),
            "h:h1 slots=8\nh2 slots=4\n");
  EXPECT_EQ(file("cat <<E > a\nx\nE\nsed -n p b > a\n"), "");
  EXPECT_EQ(file("cat <<E 2> a\nx\nE\n"), "");
  EXPECT_EQ(file("cat <<E > a && run --x\n{\nE\n"), "a:{\n");
  EXPECT_EQ(file("if [ -f x ]; then\n cat <<E > a\nx\nE\nfi\n"), "");
  const ShellCommand made = read("# one\ncat <<E > a\nx\nE\nrun --y 1\n");
  ASSERT_EQ(made.files.size(), 1U);
  EXPECT_EQ(made.files[0].line, 3);
  EXPECT_THAT(texts_of(made.words), ElementsAre("run", "--y", "1"));
}

TEST(ShellWords, CarriesOutFunctionsThatAreCalled) {
  EXPECT_THAT(words_of("f() { TP=8; }\nf\nrun --tp $TP"), ElementsAre("--tp", "8"));
  EXPECT_THAT(words_of("f() {\n local A=2; B=$A\n}\nA=1\nf\nrun $A $B"), ElementsAre("1", "2"));
  EXPECT_THAT(words_of("function f { run \"$@\" $# $2; }\nf a 'b c'"),
              ElementsAre("a", "b c", "2", "b", "c"));
  EXPECT_THAT(words_of("f() { A=1; return; A=2; }\nf\nrun $A"), ElementsAre("1"));
  EXPECT_THAT(words_of("f() { [ \"$1\" = x ]; }\nif f x; then A=1; else A=2; fi\nrun $A"),
              ElementsAre("1"));
  EXPECT_THAT(words_of("f() { A=$X; }\nX=2 f\nX=${X:-unset}\nrun $A $X"),
              ElementsAre("2", "unset"));
  EXPECT_THAT(words_of("set -- a b c\nshift\nrun \"$@\" $1 $#"), ElementsAre("b", "c", "b", "2"));
  EXPECT_EQ(read("f() {\n\n torchrun x.py --a\n}\nf\n").words.front().line, 3);
  EXPECT_THAT(notes_of("f() { TP=8; }\nfor i in 1; do f; done\nrun --a"), HasSubstr("sets TP"));
  EXPECT_THAT(notes_of("f() { TP=8; f; }\nf\nrun --tp 1"),
              HasSubstr("run.sh:1: the function that is called is not read: it sets TP"));
  read_shell("f() { g; g; g; g; }\ng() { f; f; f; f; }\nf\n", "run.sh").ok();
}

TEST(ShellWords, ChangesValuesAsBashDoes) {
  const std::string file = "F=/data/a_b.tar.gz\n";
  EXPECT_THAT(words_of(file + "run ${F##*/} ${F#*/} ${F%.*} ${F%%.*} ${F#x} \"${F%\"/a\"*}\""),
              ElementsAre("a_b.tar.gz", "data/a_b.tar.gz", "/data/a_b.tar", "/data/a_b",
                          "/data/a_b.tar.gz", "/data"));
  EXPECT_THAT(
      words_of(file + "run ${F/a/X} ${F//a/X} ${F/#\\/data/D} ${F/%gz/zst} ${F//[._]/-} ${F/a}"),
      ElementsAre("/dXta/a_b.tar.gz", "/dXtX/X_b.tXr.gz", "D/a_b.tar.gz", "/data/a_b.tar.zst",
                  "/data/a-b-tar-gz", "/dta/a_b.tar.gz"));
  EXPECT_THAT(
      words_of("A=(1 22 '3 3')\nS=Hello\nrun ${#A[@]} ${#A[1]} ${#S} ${S^^} ${S,,} ${S:1:3} "
               "${S: -2} \"${A[@]:1}\" ${A[@]:0:1} ${S:1:-1}"),
      ElementsAre("3", "2", "5", "HELLO", "hello", "ell", "lo", "22", "3 3", "1", "ell"));
  EXPECT_THAT(words_of("A=(a.x b.x)\nrun \"${A[@]%.x}\" ${A[@]/#/--}"),
              ElementsAre("a", "b", "--a.x", "--b.x"));
  EXPECT_THAT(words_of("X=1\nrun ${X:?not set} ${Y:?not set} ${!X} ${X@Q} ${X//1/&}"),
              ElementsAre("1", "${Y:?not set}", "${!X}", "${X@Q}", "${X//1/&}"));
  EXPECT_THAT(
      words_of("V=llama-8b\n[[ $V == llama* ]] && A=1\ncase $V in *-7b) B=7;; *-[0-9]b) B=8;; "
               "esac\n[[ ! $V != *8? ]] && C=1\nrun $A $B $C"),
      ElementsAre("1", "8", "1"));
  EXPECT_THAT(words_of("V=$(x)b\nrun ${V%b} `# nothing` y"), ElementsAre("${V%b}", "y"));
}

}  // namespace
}  // namespace shardwise
