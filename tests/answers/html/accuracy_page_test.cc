#include "answers/html/accuracy_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/score/published.h"
#include "planner/score/rows/row.h"
#include "tests/answers/html/page_checker.h"

namespace shardwise::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

const ScoreReport& public_report() {
  static const ScoreReport kReport = score(*read_rows(published_rows(), "public.jsonl"));
  return kReport;
}

std::string page_of(const ScoreReport& report) {
  return accuracy_page(
      {&report, "shardwise score examples/public.jsonl -o accuracy.html", "1.2.3"});
}

TEST(AccuracyPage, IsWellFormedAndLoadsNothing) {
  const std::string text = page_of(public_report());
  EXPECT_THAT(test::Page(text).mistakes(), testing::IsEmpty());
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
  for (const char* each : {"<script", "<link", "<img", "src=", "@import", "url("}) {
    EXPECT_THAT(text, Not(HasSubstr(each))) << each;
  }
}

TEST(AccuracyPage, HasEveryEngineModelAndGpuWithItsRows) {
  const test::Page page(page_of(public_report()));
  std::string grids;
  for (const test::PageElement& each : page.all("section", "id=\"grid-")) grids += each.text;
  for (const ScoredFigure& figure : public_report().figures) {
    EXPECT_THAT(grids, HasSubstr(figure.engine));
    EXPECT_THAT(grids, HasSubstr(figure.model));
    EXPECT_THAT(grids, HasSubstr(figure.gpu));
  }
}

TEST(AccuracyPage, NamesTheTenWorstRows) {
  ScoreReport report;
  for (int i = 1; i <= 12; ++i) {
    ScoredFigure figure;
    figure.id = "made-up/" + std::string(1, static_cast<char>('a' + i));
    figure.source = "made-up";
    figure.quantity = Scored::time;
    figure.measured = 1;
    figure.predicted = 1 - 0.05 * i;
    figure.engine = "fsdp2";
    figure.gpu = "h100-sxm";
    figure.model = "a <b> model";
    figure.in_sample = i % 2 == 0;
    report.figures.push_back(figure);
  }
  summarise(report);
  const std::string text = page_of(report);
  const test::Page page(text);
  EXPECT_THAT(page.mistakes(), testing::IsEmpty());
  const std::string worst = page.all("section", "id=\"worst-time\"").front().text;
  EXPECT_THAT(worst, HasSubstr("made-up/m"));
  EXPECT_THAT(worst, Not(HasSubstr("made-up/b")));
  EXPECT_THAT(page.all("td", "bad"), testing::Not(testing::IsEmpty())) << "red cells stay";
  const std::string overall = page.all("section", "id=\"overall\"").front().text;
  EXPECT_THAT(overall, HasSubstr("in sample"));
  EXPECT_THAT(overall, HasSubstr("left out"));
}

}  // namespace
}  // namespace shardwise::sim
