// The script of a page and parse_filter(), which the viewer uses, read one language: every text
// shows the same rows or has the same problem. Skipped where there is no Chromium.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "answers/layout_filter.h"
#include "tests/answers/html/ranked.h"
#include "tests/support/browser.h"
#include "tests/support/scratch.h"

namespace shardwise::sim {
namespace {

constexpr std::string_view kTexts[] = {
    "",
    "   ",
    "tp<=2",
    "tp<2",
    "tp>2",
    "tp>=2",
    "tp=2",
    "tp==2",
    "tp:2",
    "tp!=2",
    "  tp<=4   pp>1 ",
    // Columns that the page's table does not show, and words.
    "shard>=2",
    "repl:1",
    "dp>=4",
    "zero:1",
    "mbs>1",
    "etp=1",
    "upper<70",
    "tokens>1e4",
    "cost<1e9",
    "cost!=5",
    "gpus=16",
    "model<100",
    "rank<=3",
    "rank!=1",
    "step<1e3 mfu>1",
    "memory<=60.5",
    "memory>=.5",
    "memory>5.",
    "memory>-1E+1",
    "engine:megatron",
    "engine=megatron",
    "engine=megatron_ddp",
    "engine!=megatron_ddp",
    "recompute:none",
    "recompute:-",
    "recompute=none",
    "recompute:sel",
    "recompute!=full",
    "settings:none",
    "settings:recompute",
    "settings:-",
    "settings!=none",
    "settings:<x",
    // Traits.
    "fits",
    "!fits",
    "risk",
    "!risk",
    "over",
    "!over",
    "front",
    "!front",
    "fits front tp<=4",
    // What is refused; the conditions before it hold.
    "tpp<8",
    "tp:2 tpp<8",
    "tp:2 xyzzy",
    "tp",
    "memory",
    "recompute",
    "settings",
    "recompute:",
    "recompute=",
    "recompute<full",
    "engine>=a",
    "tp<",
    "tp<=eight",
    "tp!8",
    "tp!",
    "!tp",
    "!tp<8",
    "!",
    "=",
    "=8",
    ":",
    "<",
    "tp<=>8",
    "tp=<8",
    "tp>=0x10",
    "tp>=+1",
    "tp<inf",
    "tp<nan",
    "tp<1e999",
    "tp>1e-400",
    "tp>=0e-999",
    "tp>1e",
    "tp>1_0",
    "tp>1,5",
    "tp>.",
    "tp>-",
    "TP<=8",
    "Fits",
    "fit",
    "fitss",
    "frnot",
    "megatron",
    "ranks<3",
    "memroy<5",
    "memoryy",
    "recompte:full",
    "tp<=8,pp>1",
    "tp <= 8",
    "tp\t<8",
    "tp<8\tfits",
    "größe<8",
    "tp<ü",
    "—",
    "tp\x7f<8",
    "{0}",
    "{1}<8",
    "tp<{1}",
    "constructor",
    "__proto__<1",
    "toString",
    "<svg onload=alert(1)>",
    "a_word_that_is_longer_than_twenty_four_bytes<8",
    "tp<a_value_that_is_longer_than_twenty_four_bytes",
};

/// As a script has it: every byte but plain ones escaped.
std::string as_script(std::string_view text) {
  std::string bytes;
  for (const char c : text) {
    bytes += fmt::format("{}{}", bytes.empty() ? "" : ",", int{static_cast<unsigned char>(c)});
  }
  return "[" + bytes + "]";
}

/// A page that types each text and lists the rows it then shows and what it says of them.
std::string typing_page(std::string page) {
  const std::size_t policy = page.find("<meta http-equiv=\"Content-Security-Policy\"");
  page.erase(policy, page.find('\n', policy) - policy);  // it would not run our script
  std::string script = "<pre id=\"shown\"></pre><script>\n";
  script += "const all = Array.from(document.getElementById('layouts').tBodies[0].rows);\n";
  script += "const type = (bytes) => {\n";
  script += "  const input = document.getElementById('layout-filter');\n";
  script += "  input.value = new TextDecoder().decode(new Uint8Array(bytes));\n";
  script += "  input.dispatchEvent(new Event('input'));\n";
  script += "  const shown = all.map((row) => (row.hidden ? '.' : '#')).join('');\n";
  script += "  const wrong = input.getAttribute('aria-invalid') === 'true';\n";
  script += "  const says = document.getElementById('layout-count').textContent;\n";
  script += "  const line = `${shown} ${wrong ? says : ''}`;\n";
  script += "  document.getElementById('shown').append(line, '\\n');\n};\n";
  for (const std::string_view text : kTexts) script += "type(" + as_script(text) + ");\n";
  script += "</script>\n";
  return page.insert(page.find("</body>"), script);
}

std::string unescaped(std::string text) {
  for (const auto& [from, to] :
       {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")}) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at) {
      text.replace(at, std::string_view(from).size(), to);
    }
  }
  return text;
}

TEST(FilterInBrowser, ShowsTheRowsAndSaysTheProblemsOfTheViewer) {
  if (test::browser().empty()) GTEST_SKIP() << "no Chromium on PATH (apt-get install chromium)";
  const auto all = ranked();
  std::vector<PlanRow>& best = all->answer.best;
  ASSERT_EQ(best.size(), 12U);
  best[2].candidate.layout.recompute = Recompute::selective;
  best[3].candidate.layout.recompute = Recompute::full;
  best[4].candidate.cost.upper = all->answer.usable + 1_GiB;
  best[5].candidate.cost.needed = all->answer.usable + 1_GiB;
  best[6].dollars_per_1e9_tokens = 0;
  best[7].engine = "größe</script>-<x";
  const test::Scratch scratch;
  const std::string file = scratch.write_bytes("report.html", typing_page(all->page()));
  const test::Outcome outcome =
      test::run_browser(scratch.path("profile"), {"--dump-dom", "file://" + file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string begin = "<pre id=\"shown\">";
  const std::size_t from = outcome.out.find(begin);
  ASSERT_NE(from, std::string::npos);
  std::string said = unescaped(outcome.out.substr(from + begin.size()));
  for (const std::string_view text : kTexts) {
    const ParsedFilter parsed = parse_filter(text);
    std::string expected;
    for (std::size_t i = 0; i < best.size(); ++i) {
      expected += parsed.filter.keeps(priced(best[i], i + 1, all->answer)) ? '#' : '.';
    }
    expected += " " + parsed.problem;
    const std::size_t end = said.find('\n');
    ASSERT_NE(end, std::string::npos) << text;
    EXPECT_EQ(said.substr(0, end), expected) << text;
    said.erase(0, end + 1);
  }
}

}  // namespace
}  // namespace shardwise::sim
