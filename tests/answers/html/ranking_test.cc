#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "answers/plan_columns.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "tests/answers/html/page_checker.h"
#include "tests/answers/html/ranked.h"

namespace shardwise::sim {
namespace {

using test::Page;
using test::PageElement;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Cells of the table of layouts, row by row.
std::vector<std::vector<PageElement>> cells_of(const Page& page) {
  std::vector<std::vector<PageElement>> rows;
  bool inside = false;
  for (const PageElement& each : page.elements()) {
    if (each.name == "table") inside = each.attribute("id") == "layouts";
    if (!inside) continue;
    if (each.name == "tr") rows.emplace_back();
    if (each.name == "td" || each.name == "th") rows.back().push_back(each);
  }
  return rows;
}

TEST(Ranking, HasTheRowsAndColumnsOfTheAnswer) {
  const auto all = ranked();
  const Page page(all->page());
  EXPECT_THAT(page.mistakes(), IsEmpty());
  const auto rows = cells_of(page);
  const ToldColumns told = told_columns(all->answer.best, false);
  ASSERT_EQ(rows.size(), 1 + all->answer.best.size());
  for (std::size_t c = 0; c < told.columns.size(); ++c) {
    EXPECT_EQ(rows[0].at(c + 1).text, told.columns[c]->heading);
    EXPECT_EQ(rows[0].at(c + 1).attribute("data-key"), told.columns[c]->key);
  }
  for (std::size_t i = 0; i < all->answer.best.size(); ++i) {
    const PlanRow& row = all->answer.best[i];
    for (std::size_t c = 0; c < told.columns.size(); ++c) {
      EXPECT_EQ(rows[i + 1].at(c + 1).text, told.columns[c]->text(priced(row)));
    }
  }
}

TEST(Ranking, AsksThePlansOwnQuestion) {
  const auto all = ranked();
  // What is asked of the best plan answers with it, and with the simulated step of the page.
  EXPECT_EQ(all->answer.best.front().candidate.layout, all->made.plan.layout);
  EXPECT_EQ(all->answer.best.front().step(), all->made.simulation.report.step_time);
  EXPECT_THAT(all->page(), HasSubstr("this plan is marked"));
}

TEST(Ranking, MarksThePlanWhereverItIs) {
  for (const std::size_t rank : {0U, 3U}) {
    const auto all = ranked(rank);
    const Page page(all->page());
    const auto marked = page.all("tr", "class=\"chosen\"");
    ASSERT_EQ(marked.size(), 1U);
    EXPECT_EQ(marked[0].text.substr(0, 1), std::to_string(rank + 1));
  }
}

TEST(Ranking, PutsAPlanThatIsNotAmongTheBestBelowThem) {
  const auto all = ranked(5, 3);
  ASSERT_EQ(all->answer.best.size(), 3U);
  const Page page(all->page());
  const auto rows = cells_of(page);
  ASSERT_EQ(rows.size(), 1U + 3 + 1);
  EXPECT_EQ(rows.back().at(0).text, "-");
  EXPECT_EQ(rows.back().at(1).text, format_seconds(all->made.simulation.report.step_time));
  EXPECT_THAT(all->page(), HasSubstr("not among the best 3"));
}

double number_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? NAN : std::strtod(text.c_str() + at + key.size(), nullptr);
}

TEST(Ranking, LetsThePartsOfAWaterfallSumToTheDifference) {
  const auto all = ranked();
  const Page page(all->page());
  std::vector<std::vector<std::pair<double, double>>> falls;  // from, to, in percent
  bool inside = false;
  for (const PageElement& each : page.elements()) {
    if (each.name == "table") {
      inside = each.attribute("class") == "waterfall";
      if (inside) falls.emplace_back();
    }
    if (!inside || each.name != "i") continue;
    const std::string style = each.attribute("style");
    const double left = number_after(style, "left:");
    const double right = left + number_after(style, "width:");
    const bool more = each.attribute("class") == "more";
    falls.back().emplace_back(more ? left : right, more ? right : left);
  }
  ASSERT_EQ(falls.size(), 3U);
  for (const auto& bars : falls) {
    ASSERT_GE(bars.size(), 2U);
    const auto& whole = bars.back();
    double at = whole.first;
    for (std::size_t i = 0; i + 1 < bars.size(); ++i) {
      EXPECT_NEAR(bars[i].first, at, 0.01) << "each begins where the one before ended";
      at = bars[i].second;
    }
    EXPECT_NEAR(at, whole.second, 0.01);
  }
}

TEST(Ranking, SaysWhyNotTheNextThree) {
  const auto all = ranked(1);
  const std::string text = all->page();
  // The plan is second: the others are 1, 3 and 4.
  for (const char* other : {"<h3>#1: ", "<h3>#3: ", "<h3>#4: "})
    EXPECT_THAT(text, HasSubstr(other));
  EXPECT_THAT(text, Not(HasSubstr("<h3>#2: ")));
  const PlanRow& best = all->answer.best.front();
  EXPECT_THAT(text, HasSubstr(fmt::format(
                        "simulated {}, {}", format_seconds(*best.simulated),
                        signed_seconds(*best.simulated - all->made.simulation.report.step_time))));
}

TEST(Ranking, DrawsTheFrontAndEveryLayoutOnce) {
  const auto all = ranked();
  const Page page(all->page());
  EXPECT_EQ(page.all("circle", "class=\"dot\"").size(), all->answer.best.size());
  const auto front = page.all("circle", "class=\"dot on-front\"");
  ASSERT_FALSE(front.empty());
  EXPECT_LE(front.size(), all->answer.front.size());
  double memory = 0;
  double height = 0;
  for (const PageElement& dot : front) {  // by memory, faster and faster: lower in the picture
    const double x = std::stod(dot.attribute("cx"));
    const double y = std::stod(dot.attribute("cy"));
    EXPECT_GE(x, memory);
    EXPECT_GE(y, height);
    memory = x;
    height = y;
  }
  EXPECT_EQ(page.all("circle", "class=\"this\"").size(), 1U);
}

TEST(Ranking, IsLeftOutOfAPageWithoutOne) {
  const std::string text = made_of(pipelined(4)).page();
  for (const char* id : {"\"ranking\"", "\"front\"", "\"why-not\""}) {
    EXPECT_THAT(text, Not(HasSubstr(std::string("<section id=") + id)));
  }
}

// The most that a page may hold: 200 layouts and 16 stages.
TEST(Ranking, KeepsALargePageBelowAMegabyte) {
  auto all = ranked();
  Plan plan = pipelined(16);
  plan.job.global_batch_size = 256;
  all->made = made_of(std::move(plan));
  while (all->answer.best.size() < 200) {
    all->answer.best.push_back(all->answer.best[all->answer.best.size() % 12]);
  }
  const StepReport measured = as_measured(all->made.simulation.report);
  PageContent content = all->made.content();
  content.measured = &measured;
  content.question = &all->question;
  content.answer = &all->answer;
  EXPECT_LT(report_page(content).size(), 1'000'000U);
}

TEST(Levers, AreATableOfWhatSavesAndALineOfTheRest) {
  const auto all = ranked();
  PageContent content = all->made.content();
  content.question = &all->question;
  content.answer = &all->answer;
  EXPECT_THAT(report_page(content), Not(HasSubstr("What would help most")));  // nobody asked
  const std::vector<HelpfulChange> changes = helpful_changes(all->question, all->answer);
  content.levers = &changes;
  const std::string text = report_page(content);
  EXPECT_THAT(Page(text).mistakes(), IsEmpty());
  EXPECT_THAT(text, HasSubstr("What would help most"));
  EXPECT_THAT(text, HasSubstr(format_seconds(all->answer.best.front().step())));
  std::size_t told = 0;
  for (const HelpfulChange& each : changes) {
    if (each.faster < kLeastHelp) continue;
    EXPECT_THAT(text, HasSubstr(">" + signed_percent(-each.faster) + "<")) << each.text;
    ++told;
  }
  EXPECT_GT(told, 0U);
}

}  // namespace
}  // namespace shardwise::sim
