#include "answers/html/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "answers/html/assets.h"
#include "planner/estimate/estimate.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/plan/plan_page.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/comparison/tiles.h"
#include "tests/answers/html/page_checker.h"
#include "tests/answers/html/pages.h"

namespace shardwise::sim {
namespace {

using test::Page;
using test::PageElement;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The text of the element with an id.
std::string text_of(const Page& page, const std::string& id) {
  for (const PageElement& each : page.elements()) {
    if (each.attribute("id") == id) return each.text;
  }
  return "no element " + id;
}

/// "25,874,663,936" as a number.
std::int64_t number_in(const std::string& text) {
  std::string digits;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) digits += c;
  }
  return digits.empty() ? 0 : std::stoll(digits);
}

TEST(ReportPage, IsWellFormed) {
  for (const std::int32_t pp : {1, 4, 16}) {
    const Made made = made_of(pipelined(pp));
    EXPECT_THAT(Page(made.page()).mistakes(), IsEmpty()) << pp;
    EXPECT_THAT(Page(made.page_with(as_measured(made.simulation.report))).mistakes(), IsEmpty());
  }
}

TEST(ReportPage, GivesEqualBytesForEqualContent) {
  EXPECT_EQ(made_of(pipelined(4)).page(), made_of(pipelined(4)).page());
}

TEST(ReportPage, HasTheNumbersOfTheReportInItsTiles) {
  const Made made = made_of(pipelined(4));
  const StepReport& report = made.simulation.report;
  const Page page(made.page());
  const std::map<std::string, std::string> numbers = {
      {"step_time", format_seconds(report.step_time)},
      {"mfu", format_percent(report.mfu)},
      {"tokens_per_s", format_scaled(report.tokens_per_s)},
      {"peak_memory", format_bytes(report.verdict.point)},
      {"bubble", format_percent(report.time.bubble / report.step_time)},
      {"exposed", format_percent(exposed_communication(report) / report.step_time)},
      {"cost", format_dollars(report.dollars_per_1e9_tokens)}};
  for (const auto& [id, number] : numbers) {
    EXPECT_THAT(text_of(page, "tile-" + id), HasSubstr(number)) << id;
  }
  EXPECT_EQ(numbers.size(), tiles(made.plan, report, nullptr).size());
}

TEST(ReportPage, HasEveryPartOfTheTime) {
  const Made made = made_of(pipelined(4));
  const StepReport& report = made.simulation.report;
  const std::string text = text_of(Page(made.page()), "time");
  for (const TimePart& part : kTimeParts) {
    const std::string time = format_seconds(report.time.*part.field);
    if (time == format_seconds(Seconds(0))) continue;
    EXPECT_THAT(text, HasSubstr(std::string(part.label) + time +
                                format_percent(report.time.*part.field / report.step_time)));
  }
  EXPECT_THAT(text, HasSubstr("step" + format_seconds(report.step_time)));
}

/// Rows of a table of bytes: its label, then its numbers.
std::vector<std::pair<std::string, std::vector<std::int64_t>>> ledger_rows(const Page& page,
                                                                           std::size_t which) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> rows;
  std::size_t table = 0;
  bool inside = false;
  for (const PageElement& each : page.elements()) {
    if (each.name == "table") inside = each.attribute("class") == "ledger" && table++ == which;
    if (!inside) continue;
    if (each.name == "th" && each.attribute("scope") == "row") rows.push_back({each.text, {}});
    if (each.name == "td" && !rows.empty()) rows.back().second.push_back(number_in(each.text));
  }
  return rows;
}

TEST(ReportPage, SumsBytesExactlyByCategoryGroupAndPhase) {
  const Made made = made_of(pipelined(4));
  const StepReport& report = made.simulation.report;
  const StageMemory& fullest =
      report.stages.at(static_cast<std::size_t>(report.verdict.worst_stage));
  const auto rows = ledger_rows(Page(made.page()), 0);
  ASSERT_GE(rows.size(), kMemoryGroups + 1);
  ASSERT_EQ(rows.back().first, "total");
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    std::int64_t groups = 0;
    std::int64_t categories = 0;
    std::size_t group = 0;
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      // A group's row is above those of its categories, one of which may have its name.
      if (group < kMemoryGroups && rows[i].first == kMemoryGroupLabels.at(group)) {
        groups += rows[i].second.at(p);
        ++group;
      } else {
        categories += rows[i].second.at(p);
      }
    }
    EXPECT_EQ(group, kMemoryGroups);
    EXPECT_EQ(groups, fullest.phases.at(p).total().value());
    EXPECT_EQ(categories, groups);
    EXPECT_EQ(rows.back().second.at(p), groups);
  }
}

TEST(ReportPage, SumsTheBytesOfEveryStage) {
  const Made made = made_of(pipelined(4));
  const StepReport& report = made.simulation.report;
  const auto rows = ledger_rows(Page(made.page()), 1);
  ASSERT_EQ(rows.size(), report.stages.size());
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const std::vector<std::int64_t>& numbers = rows[s].second;  // phase, groups, total, upper
    std::int64_t sum = 0;
    for (std::size_t g = 0; g < kMemoryGroups; ++g) sum += numbers.at(1 + g);
    EXPECT_EQ(sum, report.stages[s].peak_total().value());
    EXPECT_EQ(numbers.at(1 + kMemoryGroups), sum);
    EXPECT_EQ(numbers.at(2 + kMemoryGroups), report.stage_upper[s].value());
  }
}

TEST(ReportPage, DrawsBarsAsLongAsTheirBytes) {
  const Made made = made_of(pipelined(4));
  const StepReport& report = made.simulation.report;
  const StageMemory& fullest =
      report.stages.at(static_cast<std::size_t>(report.verdict.worst_stage));
  const Bytes scale = std::max(made.plan.cluster.gpu.hbm_bytes, fullest.peak_total());
  double drawn = 0;
  const Page page(made.page());
  std::vector<double> lengths;  // of the stacks, in percent
  for (const PageElement& each : page.elements()) {
    if (each.attribute("class") == "stack predicted") lengths.push_back(0);
    const std::string width = each.attribute("style");
    if (each.name != "i" || lengths.empty() || !width.starts_with("width:")) continue;
    lengths.back() += std::stod(width.substr(6));
  }
  ASSERT_GE(lengths.size(), kMemoryPhases + report.stages.size());
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    drawn = static_cast<double>(fullest.phases.at(p).total().value()) /
            static_cast<double>(scale.value());
    EXPECT_NEAR(lengths[p], 100 * drawn, 0.005);
  }
}

TEST(ReportPage, PutsMeasuredBesidePredicted) {
  const Made made = made_of(pipelined(4));
  StepReport measured = as_measured(made.simulation.report);
  // 25 % longer: the prediction is 20 % too short.
  measured.step_time = 1.25 * measured.step_time;
  measured.time.straggler = measured.time.straggler + 0.2 * measured.step_time;
  const Page page(made.page_with(measured));
  EXPECT_THAT(text_of(page, "tile-step_time"),
              HasSubstr("measured " + format_seconds(measured.step_time) + " -20.0 %"));
  EXPECT_THAT(text_of(page, "measured"), HasSubstr("-20.0 % of the measured time"));
  const std::string difference =
      signed_seconds(made.simulation.report.step_time - measured.step_time);
  EXPECT_THAT(text_of(page, "time"), HasSubstr(difference));
  EXPECT_THAT(Page(made.page()).all("section", "id=\"measured\""), IsEmpty());
  EXPECT_THAT(made.page(), Not(HasSubstr("class=\"measured\"")));
}

TEST(ReportPage, SaysWhyMeasuredTimesMeanNothing) {
  const Made made = made_of(pipelined(4));
  StepReport measured = as_measured(made.simulation.report);
  measured.assumptions.push_back({"device.shared", "4 ranks shared a GPU", "the run"});
  EXPECT_THAT(made.page_with(measured), HasSubstr("<p class=\"warning\">4 ranks shared a GPU</p>"));
}

TEST(ReportPage, HasAShortScriptThatCannotEndItsElement) {
  const std::string_view script = report_script();
  EXPECT_LT(std::count(script.begin(), script.end(), '\n'), 300);
  EXPECT_EQ(script.find("</"), std::string_view::npos);
  EXPECT_EQ(script.find("<!--"), std::string_view::npos);
  EXPECT_EQ(report_style().find('<'), std::string_view::npos);
}

TEST(ReportPage, SaysNothingAgainstAMeasurementThatEqualsIt) {
  const Made made = made_of(pipelined(4));
  const Page page(made.page_with(as_measured(made.simulation.report)));
  for (const Tile& tile : tiles(made.plan, made.simulation.report, nullptr)) {
    EXPECT_THAT(text_of(page, "tile-" + std::string(tile.id)), HasSubstr("+0.0 %")) << tile.id;
  }
}

TEST(ReportPage, LoadsNothingFromElsewhere) {
  const Made made = made_of(pipelined(4));
  const Page page(made.page());
  const auto policies = page.all("meta", "Content-Security-Policy");
  ASSERT_EQ(policies.size(), 1U);
  EXPECT_THAT(policies[0].attribute("content"), testing::StartsWith("default-src 'none'; "));
  for (const PageElement& each : page.elements()) {  // before anything that could load
    if (each.attributes.find("Content-Security-Policy") != std::string::npos) break;
    EXPECT_THAT(each.name, testing::AnyOf("html", "head", "meta"));
  }
  for (const PageElement& each : page.elements()) {
    for (const char* loads : {"src", "href", "data", "srcset", "action", "poster", "background"}) {
      EXPECT_EQ(each.attribute(loads), "") << each.name;
    }
    EXPECT_THAT(each.attributes, Not(testing::ContainsRegex(" on[a-z]+=")));
    for (const char* name : {"link", "iframe", "object", "embed", "base", "form", "img", "a"}) {
      EXPECT_NE(each.name, name);
    }
    if (each.name == "style" || each.name == "script") {
      EXPECT_THAT(each.text, Not(HasSubstr("@import")));
      if (each.attribute("type") != "application/json") {
        EXPECT_THAT(each.text, Not(HasSubstr("http"))) << each.name;
      }
      for (std::size_t at = each.text.find("url("); at != std::string::npos;
           at = each.text.find("url(", at + 1)) {
        EXPECT_EQ(each.text.substr(at, 5), "url(#");
      }
    }
  }
}

TEST(ReportPage, KeepsHostileNamesAsText) {
  const std::string hostile =
      "</script><svg onload=alert(1)>\" onmouseover='x' &lt; \x1b[2J \xE2\x80\xAE]]>";
  Plan plan = pipelined(4);
  plan.model.name = hostile;
  plan.cluster.name = hostile;
  plan.engine.name = hostile;
  Made made = made_of(std::move(plan));
  made.simulation.report.assumptions.push_back({hostile, hostile, hostile});
  made.estimate.explanations.push_back({hostile, hostile, hostile, hostile});
  StepReport measured = as_measured(made.simulation.report);
  measured.timeline->operations.push_back({hostile, 0, "compute", 1, Seconds(99), Seconds(0)});
  const std::string text = made.page_with(measured);
  const Page page(text);
  EXPECT_THAT(page.mistakes(), IsEmpty());
  EXPECT_EQ(page.all("script").size(), 2U);
  EXPECT_EQ(page.all("svg").size(), 1U);
  EXPECT_THAT(text_of(page, "measured"), HasSubstr("</script><svg onload=alert(1)>\" onmouseover"));
  for (const PageElement& each : page.elements()) {
    EXPECT_THAT(each.attributes, Not(testing::ContainsRegex(" on[a-z]+="))) << each.name;
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text.substr(0, text.find("id=\"plan\"")), Not(HasSubstr("\xE2\x80\xAE")));
}

TEST(ReportPage, HoldsThePlan) {
  const Made made = made_of(pipelined(4));
  const Result<std::string> text = plan_in_page(made.page(), "report.html");
  ASSERT_TRUE(text.ok()) << to_string(text.problems());
  const Result<JsonValue> json = parse_json(*text, "report.html");
  ASSERT_TRUE(json.ok()) << to_string(json.problems());
  const Result<Plan> plan = plan_from_json(*json, "report.html");
  ASSERT_TRUE(plan.ok()) << to_string(plan.problems());
  EXPECT_EQ(to_json(*plan), to_json(made.plan));
}

TEST(ReportPage, ShowsTheDigestOfThePlanItHolds) {
  const Made made = made_of(pipelined(4));
  std::string page = made.page();
  EXPECT_EQ(text_of(Page(page), "plan-sha256"), made.simulation.report.plan_digest);
  const std::string key = "\"global_batch_size\": ";
  page.insert(page.find(key) + key.size(), "1");
  const Result<std::string> text = plan_in_page(page, "report.html");
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(to_string(text.problems()), HasSubstr("the plan was changed: its SHA-256 is "));
}

// Defect N8: a step time of 12 ms could be made 10 ms, and the table's data another ranking.
TEST(ReportPage, IsRefusedWhereWhatItShowsWasAltered) {
  const Made made = made_of(pipelined(4));
  const std::string page = made.page();
  ASSERT_TRUE(plan_in_page(page, "report.html").ok());
  for (const std::string id : {"tile-step_time", "time", "memory", "reasons"}) {
    const std::size_t at = page.find('>', page.find("id=\"" + id + "\"")) + 1;
    for (const std::string& other : {std::string(page).insert(at, "9"),
                                     page.substr(0, at - 1) + " hidden" + page.substr(at - 1)}) {
      const Result<std::string> text = plan_in_page(other, "report.html");
      ASSERT_FALSE(text.ok()) << id;
      EXPECT_THAT(to_string(text.problems()), HasSubstr("the page was changed: its SHA-256 is "));
    }
  }
}

TEST(ReportPage, PutsATraceBesideThePrediction) {
  const Made made = made_of(pipelined(4));
  TraceComparison trace;
  trace.stage = 2;
  trace.same_plan = false;
  trace.step.measured.length = Seconds(2);
  trace.step.measured.computing = Seconds(1.5);
  trace.step.measured.idle = Seconds(0.5);
  trace.step.predicted.length = Seconds(1.5);
  trace.step.predicted.computing = Seconds(1.25);
  trace.step.predicted.idle = Seconds(0.25);
  trace.step.kinds = {{WorkKind::gemm, StepPhase::backward,
                       KindTime{WorkKind::gemm, StepPhase::backward, 12, Seconds(1), Seconds(1)},
                       std::nullopt}};
  trace.operations = {{"bwd.layer<3>", 2, 2, Seconds(1), Seconds(0.75), true, true}};
  PageContent content = made.content();
  content.trace = &trace;
  const Page page(report_page(content));
  EXPECT_THAT(page.mistakes(), IsEmpty());
  const std::string text = text_of(page, "trace");
  EXPECT_THAT(text, HasSubstr("Predicted beside traced stage 2"));
  EXPECT_THAT(text, HasSubstr("-25.0 % of the traced time"));
  EXPECT_THAT(text, HasSubstr("The trace is of another plan"));
  EXPECT_THAT(text, HasSubstr("computing1.50 s1.25 s-250 ms"));
  EXPECT_THAT(text, HasSubstr("GEMMbackward121.00 s--1.00 s"));
  EXPECT_THAT(text, HasSubstr("bwd.layer<3>21.00 s750 ms-250 ms"));
}

TEST(ReportPage, SaysThatAPlanDoesNotFit) {
  Plan plan = pipelined(1);  // 70 B parameters on 8 GPUs
  const Made made = made_of(std::move(plan));
  ASSERT_EQ(made.simulation.report.verdict.fit, Fit::does_not_fit);
  const Page page(made.page());
  const auto verdicts = page.all("p", "class=\"verdict bad\"");
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_THAT(verdicts[0].text, HasSubstr("Does not fit: "));
  EXPECT_EQ(page.all("dd", "class=\"value bad\"").size(), 1U);
}

TEST(ReportPage, HasAnAssumptionWithItsSource) {
  Made made = made_of(pipelined(4));
  made.simulation.report.assumptions = {{"a", "links are shared", "a source of it"}};
  EXPECT_THAT(text_of(Page(made.page()), "reasons"),
              HasSubstr("1 assumption\n\nlinks are shareda source of it\n"));
}

TEST(ReportPage, SaysHowWrongTheNearestPredictionsWere) {
  const Made made = made_of(pipelined(2));
  PageContent content = made.content();
  EXPECT_THAT(report_page(content), Not(HasSubstr("How wrong such predictions were")));
  const std::vector<PublishedFigure> nearest = nearest_measured(made.plan, published_figures(), 5);
  content.published = &nearest;
  const std::string text = report_page(content);
  EXPECT_THAT(test::Page(text).mistakes(), IsEmpty());
  const TypicalErrors typical = typical_errors(nearest);
  ASSERT_TRUE(typical.time);
  ASSERT_TRUE(typical.memory);
  EXPECT_THAT(text, HasSubstr(format_percent(*typical.time) + " of a step's time, " +
                              format_percent(*typical.memory) + " of its memory"));
  for (const PublishedFigure& each : nearest) EXPECT_THAT(text, HasSubstr(each.gpu));
}

TEST(ReportPage, SaysWhatAnHourCostsAndWhenItWasMade) {
  Made made = made_of(pipelined(2));
  made.plan.cluster.price_per_gpu_hour = 2.5;
  made.plan.cluster.price_source = "a <list>";
  PageContent content = made.content();
  EXPECT_THAT(report_page(content), Not(HasSubstr("<p>Made ")));
  content.date = "30 <November>";
  const std::string text = report_page(content);
  EXPECT_THAT(text, HasSubstr("$2.50 an hour for a GPU, $40.00 for all 16"));
  EXPECT_THAT(text, HasSubstr("a &lt;list&gt;"));
  EXPECT_THAT(text, HasSubstr("<p>Made 30 &lt;November&gt;</p>"));
}

}  // namespace
}  // namespace shardwise::sim
