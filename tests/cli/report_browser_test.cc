// The page in a browser: its script runs under its own policy, sorts and filters. Skipped where
// there is no Chromium.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/support/browser.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A failure need not print the page.
bool has(const std::string& page, const std::string& part) {
  return page.find(part) != std::string::npos;
}

/// A row of the table of layouts as it is in the document.
struct Row {
  int rank = 0;
  int tp = 0;
  bool hidden = false;
};

class ReportInBrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (test::browser().empty()) GTEST_SKIP() << "no Chromium on PATH (apt-get install chromium)";
    const std::string plan = scratch_.path("plan.json");
    ASSERT_EQ(shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--gpus", "16",
                         "--engine", "megatron_ddp", "-o", plan})
                  .exit_code,
              0);
    ASSERT_EQ(shardwise({"report", plan, "-o", scratch_.path("report.html")}).exit_code, 0);
  }

  Outcome run(const std::vector<std::string>& more) const {
    return test::run_browser(scratch_.path("profile"), more);
  }
  /// The document after its script has run.
  std::string document(const std::string& words) const {
    const Outcome outcome = run({"--dump-dom", "file://" + scratch_.path("report.html") + words});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
  static std::vector<Row> rows_of(const std::string& document) {
    std::vector<Row> rows;
    const std::size_t table = document.find("id=\"layouts\"");
    const std::string text = document.substr(table, document.find("</table>", table) - table);
    const std::string head = text.substr(0, text.find("<tbody>"));
    int columns = 0;
    int tp = -1;
    const std::regex key("data-key=\"([a-z_]+)\"");
    for (std::sregex_iterator at(head.begin(), head.end(), key); at != std::sregex_iterator();
         ++at, ++columns) {
      if ((*at)[1] == "tp") tp = columns;
    }
    const std::string body = text.substr(head.size());
    const std::regex form("<tr([^>]*)>(.*?)</tr>");
    const std::regex cell("<td[^>]*>([0-9]*)");
    for (std::sregex_iterator at(body.begin(), body.end(), form); at != std::sregex_iterator();
         ++at) {
      Row row;
      row.hidden = (*at)[1].str().find("hidden") != std::string::npos;
      const std::string cells = (*at)[2];
      int column = 0;
      for (std::sregex_iterator c(cells.begin(), cells.end(), cell); c != std::sregex_iterator();
           ++c, ++column) {
        const int number = std::atoi((*c)[1].str().c_str());  // NOLINT(*err34*)
        if (column == 0) row.rank = number;
        if (column == tp) row.tp = number;
      }
      rows.push_back(row);
    }
    return rows;
  }

  test::Scratch scratch_;
};

TEST_F(ReportInBrowser, ShowsTheRankingInItsOrder) {
  const std::string page = document("");
  const std::vector<Row> rows = rows_of(page);
  ASSERT_GT(rows.size(), 4U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].rank, static_cast<int>(i) + 1);
    EXPECT_FALSE(rows[i].hidden);
  }
  EXPECT_TRUE(has(page, std::to_string(rows.size()) + " layouts</span>"));
  EXPECT_FALSE(has(page, "id=\"layout-tools\" hidden"));
}

TEST_F(ReportInBrowser, SortsByAColumn) {
  for (const bool falling : {false, true}) {
    const std::vector<Row> rows = rows_of(document(falling ? "#sort=-tp" : "#sort=tp"));
    ASSERT_GT(rows.size(), 4U);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const Row& a = rows[falling ? i : i - 1];
      const Row& b = rows[falling ? i - 1 : i];
      EXPECT_LE(a.tp, b.tp);
      if (a.tp == b.tp) {
        EXPECT_LT(rows[i - 1].rank, rows[i].rank) << "equal rows keep the ranking's order";
      }
    }
  }
}

TEST_F(ReportInBrowser, FiltersByWords) {
  const std::vector<Row> all = rows_of(document(""));
  std::size_t wanted = 0;
  for (const Row& row : all) wanted += row.tp <= 2 && row.rank > 2 ? 1U : 0U;
  const std::string page = document("#filter=tp%3C%3D2+rank%3E2");
  std::size_t shown = 0;
  for (const Row& row : rows_of(page)) {
    EXPECT_EQ(!row.hidden, row.tp <= 2 && row.rank > 2) << row.rank;
    shown += row.hidden ? 0U : 1U;
  }
  EXPECT_EQ(shown, wanted);
  EXPECT_GT(shown, 0U);
  EXPECT_LT(shown, all.size());
  EXPECT_TRUE(has(page, std::to_string(shown) + " of " + std::to_string(all.size())));
}

TEST_F(ReportInBrowser, SaysWhatIsWrongWithAWordAndFiltersNothing) {
  for (const auto& [words, message] :
       {std::pair("#filter=tq%3E1", "tq is no column (did you mean tp?)"),
        std::pair("#filter=tp%3Efour", "tp: four is not a number")}) {
    const std::string page = document(words);
    EXPECT_TRUE(has(page, message)) << message;
    EXPECT_TRUE(has(page, "aria-invalid=\"true\""));
    for (const Row& row : rows_of(page)) EXPECT_FALSE(row.hidden);
  }
}

TEST_F(ReportInBrowser, BreaksNoneOfItsOwnRules) {
  const Outcome outcome =
      run({"--enable-logging=stderr", "--dump-dom", "file://" + scratch_.path("report.html")});
  EXPECT_THAT(outcome.err, Not(HasSubstr("Content Security Policy")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("Uncaught")));
}

TEST_F(ReportInBrowser, CanBePhotographed) {
  const std::string picture = scratch_.path("report.png");
  const Outcome outcome = run({"--window-size=1240,1600", "--screenshot=" + picture,
                               "file://" + scratch_.path("report.html")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string bytes = test::bytes_of_file(picture);
  EXPECT_THAT(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_GT(bytes.size(), 50'000U);
}

}  // namespace
}  // namespace shardwise::cli
