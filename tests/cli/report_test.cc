#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/plan/plan_page.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/format.h"
#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A plan of GPT-2 on 8 GPUs and its files.
class ReportVerb : public testing::Test {
 protected:
  ReportVerb() : plan_(scratch_.path("plan.json")), page_(scratch_.path("report.html")) {
    const Outcome made = shardwise({"plan", "--model", "gpt2", "--cluster", "dgx-h100", "--engine",
                                    "fsdp2", "--global-batch-size", "16", "-o", plan_});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }

  Outcome report(std::vector<std::string> more) const {
    more.insert(more.begin(), "report");
    return shardwise(more);
  }
  /// What a command must refuse in one line, without a page.
  std::string refused(const std::vector<std::string>& more) const {
    const Outcome outcome = report(more);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(page_));
    return outcome.err;
  }
  /// The simulated report, said to be measured.
  std::string measured() const {
    const std::string file = scratch_.path("measured.json");
    EXPECT_EQ(shardwise({"simulate", plan_, "-o", file}).exit_code, 0);
    std::string text = test::bytes_of_file(file);
    const std::string predicted = "\"origin\": \"predicted\"";
    text.replace(text.find(predicted), predicted.size(), "\"origin\": \"measured\"");
    return scratch_.write_bytes("measured.json", text);
  }

  test::Scratch scratch_;
  std::string plan_;
  std::string page_;
};

TEST_F(ReportVerb, HasTheNumbersOfTheReportThatSimulateWrites) {
  const Outcome outcome = report({plan_, "-o", page_});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("wrote " + page_));
  const std::string json = scratch_.path("report.json");
  ASSERT_EQ(shardwise({"simulate", plan_, "-o", json}).exit_code, 0);
  const Result<StepReport> simulated = read_report(json);
  ASSERT_TRUE(simulated.ok());
  const std::string page = test::bytes_of_file(page_);
  const auto tile = [&](const char* id, const std::string& value) {
    const std::size_t at = page.find(std::string("<div id=\"tile-") + id + "\">");
    ASSERT_NE(at, std::string::npos) << id;
    EXPECT_THAT(page.substr(at, page.find("</div>", at) - at), HasSubstr(">" + value + "<")) << id;
  };
  tile("step_time", format_seconds(simulated->step_time));
  tile("mfu", format_percent(simulated->mfu));
  tile("tokens_per_s", format_scaled(simulated->tokens_per_s));
  tile("peak_memory", format_bytes(simulated->verdict.point));
  tile("cost", format_dollars(simulated->dollars_per_1e9_tokens));
  for (const StageMemory& stage : simulated->stages) {
    EXPECT_THAT(page, HasSubstr(format_count(stage.peak_total().value())));
  }
  EXPECT_THAT(page, HasSubstr(simulated->plan_digest));
}

TEST_F(ReportVerb, IsTakenWhereAPlanIs) {
  ASSERT_EQ(report({plan_, "-o", page_}).exit_code, 0);
  EXPECT_EQ(to_json(*read_plan(page_)), test::bytes_of_file(plan_));
  EXPECT_EQ(shardwise({"simulate", page_, "--json"}).out,
            shardwise({"simulate", plan_, "--json"}).out);
  // A page from a page differs in the command that makes it, and in nothing else.
  const std::string again = scratch_.path("again.html");
  ASSERT_EQ(report({page_, "-o", again}).exit_code, 0);
  std::string first = test::bytes_of_file(page_);
  const std::string made_by = plan_ + " -o " + page_;
  first.replace(first.find(made_by), made_by.size(), page_ + " -o " + again);
  EXPECT_EQ(test::bytes_of_file(again), with_page_digest(first));
}

// Defect N8: the table of layouts was altered, the plan was not.
TEST_F(ReportVerb, RefusesAPageWhoseTableWasAltered) {
  ASSERT_EQ(report({plan_, "-o", page_, "--top", "3"}).exit_code, 0);
  const std::string page = test::bytes_of_file(page_);
  const std::size_t data = page.find("id=\"layouts-data\"");
  ASSERT_NE(data, std::string::npos);
  const std::size_t value = page.find_first_of("0123456789", page.find("\"values\"", data));
  const std::size_t cell = page.find("<td", page.find("<tbody>", page.find("id=\"layouts\"")));
  for (const std::size_t at : {value, page.find('>', cell) + 1}) {
    const std::string altered =
        scratch_.write_bytes("altered.html", std::string(page).insert(at, "1"));
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"simulate", altered},
             {"report", altered, "-o", scratch_.path("r.html")},
             {"export", altered, "--to", "megatron-lm", "-o", scratch_.path("exported")}}) {
      const Outcome refused = shardwise(words);
      EXPECT_EQ(refused.exit_code, 2) << words.front();
      EXPECT_THAT(refused.err, HasSubstr("the page was changed: its SHA-256 is "));
    }
  }
}

// Defect N8: a page whose digest was taken out.
TEST_F(ReportVerb, RefusesAPageThatShowsNoDigest) {
  ASSERT_EQ(report({plan_, "-o", page_}).exit_code, 0);
  std::string page = test::bytes_of_file(page_);
  const std::string id = "id=\"plan-sha256\"";
  page.erase(page.find(id), id.size());
  const std::string untied = scratch_.write_bytes("untied.html", page);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"simulate", untied},
           {"report", untied, "-o", scratch_.path("r.html")},
           {"export", untied, "--to", "megatron-lm", "-o", scratch_.path("exported")}}) {
    const Outcome refused = shardwise(words);
    EXPECT_EQ(refused.exit_code, 2) << words.front();
    EXPECT_THAT(refused.err, HasSubstr("the page shows no digest of its plan")) << words.front();
  }
}

TEST_F(ReportVerb, QuotesTheFilesOfItsCommand) {
  const std::string odd = scratch_.path("it's a $plan.json");
  std::filesystem::copy_file(plan_, odd);
  ASSERT_EQ(report({odd, "-o", page_}).exit_code, 0);
  EXPECT_THAT(test::bytes_of_file(page_), HasSubstr("/it&#39;\\&#39;&#39;s a $plan.json&#39; -o "));
}

TEST_F(ReportVerb, TakesAMeasuredReportOfThePlan) {
  const Outcome outcome = report({plan_, measured(), "-o", page_});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(test::bytes_of_file(page_), HasSubstr("Predicted beside measured"));
}

TEST_F(ReportVerb, TakesATraceOfThePlan) {
  const std::string trace = scratch_.path("trace.json");
  ASSERT_EQ(shardwise({"simulate", plan_, "--trace", trace}).exit_code, 0);
  const Outcome outcome = report({plan_, "--trace", trace, "-o", page_});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string page = test::bytes_of_file(page_);
  EXPECT_THAT(page, HasSubstr("Predicted beside traced"));
  EXPECT_THAT(page, HasSubstr("<b>+0.0 %</b> of the traced time"));
  EXPECT_THAT(page, HasSubstr(" --trace " + trace));
  EXPECT_EQ(report({plan_, "--trace", "tests/golden/profiler_trace.json", "-o", page_}).exit_code,
            0);
  EXPECT_THAT(test::bytes_of_file(page_), HasSubstr("Predicted beside traced"));
}

TEST_F(ReportVerb, RefusesADamagedTrace) {
  EXPECT_THAT(refused({plan_, "--trace", "tests/invalid/trace/newer_schema.json", "-o", page_}),
              HasSubstr("newer_schema.json"));
}

TEST_F(ReportVerb, RanksTheLayoutsThatPlanRanks) {
  ASSERT_EQ(report({plan_, "-o", page_, "--top", "5"}).exit_code, 0);
  const std::string page = test::bytes_of_file(page_);
  const Outcome json = shardwise({"plan", "--model", "gpt2", "--cluster", "dgx-h100", "--engine",
                                  "fsdp2", "--global-batch-size", "16", "--top", "5", "--json"});
  std::size_t at = json.out.find("\"best\": [");
  std::size_t row = page.find("<tbody>", page.find("id=\"layouts\""));
  for (int rank = 1; rank <= 5; ++rank) {
    const std::string key = "\"simulated_step_time_s\": ";
    at = json.out.find(key, at) + key.size();
    const double step = std::stod(json.out.substr(at, 30));
    row = page.find("<tr", row + 1);
    ASSERT_NE(row, std::string::npos) << rank;
    EXPECT_THAT(page.substr(row, page.find("</tr>", row) - row),
                HasSubstr(">" + format_seconds(Seconds(step)) + "<"))
        << rank;
  }
  ASSERT_EQ(report({plan_, "-o", page_, "--top", "0"}).exit_code, 0);
  EXPECT_EQ(test::bytes_of_file(page_).find("id=\"ranking\""), std::string::npos);
}

TEST_F(ReportVerb, RefusesAMeasurementOfAnotherPlan) {
  std::string text = test::bytes_of_file(measured());
  const std::size_t digit = text.find("\"plan_digest\": \"") + 16;
  text[digit] = text[digit] == '0' ? '1' : '0';
  EXPECT_THAT(refused({plan_, scratch_.write_bytes("other.json", text), "-o", page_}),
              HasSubstr("other.json: /plan_digest: of another plan: "));
}

TEST_F(ReportVerb, RefusesAMeasurementThatSaysNoPlan) {
  std::string text = test::bytes_of_file(measured());
  const std::size_t at = text.find("\"plan_digest\"");
  text.erase(at, text.find('\n', at) + 1 - at);
  EXPECT_THAT(refused({plan_, scratch_.write_bytes("other.json", text), "-o", page_}),
              HasSubstr("other.json: /plan_digest: missing: "));
}

TEST_F(ReportVerb, RefusesPipesAtOnce) {
  const std::string pipe = scratch_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refuses = HasSubstr(pipe + ": a pipe, not a regular file");
  EXPECT_THAT(refused({pipe, "-o", page_}), refuses);
  EXPECT_THAT(refused({plan_, pipe, "-o", page_}), refuses);
  EXPECT_THAT(refused({plan_, "--trace", pipe, "-o", page_}), refuses);
}

TEST_F(ReportVerb, SaysThatAReportIsNoPlan) {
  EXPECT_THAT(refused({measured(), "-o", page_}), HasSubstr("a report has no plan in it"));
}

TEST_F(ReportVerb, RefusesAPredictionInPlaceOfAMeasurement) {
  const std::string file = scratch_.path("predicted.json");
  ASSERT_EQ(shardwise({"simulate", plan_, "-o", file}).exit_code, 0);
  EXPECT_THAT(refused({plan_, file, "-o", page_}),
              HasSubstr("predicted.json: /origin: predicted, but a measured report is wanted\n"
                        "    shardwise compare shows two predictions side by side"));
}

TEST_F(ReportVerb, RefusesFilesThatAreNoPlan) {
  EXPECT_THAT(refused({scratch_.path("absent.json"), "-o", page_}), HasSubstr("no such file"));
  EXPECT_THAT(refused({scratch_.write_bytes("a.html", "<html></html>"), "-o", page_}),
              HasSubstr("a.html: a page without a plan\n"));
  std::string text = test::bytes_of_file(plan_);
  EXPECT_THAT(refused({scratch_.write_bytes("cut.json", text.substr(0, 500)), "-o", page_}),
              HasSubstr("cut.json:"));
}

TEST_F(ReportVerb, RefusesToWriteOverItsInput) {
  const Outcome outcome = report({plan_, "-o", plan_});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--output"));
  EXPECT_TRUE(read_plan(plan_).ok());
}

TEST_F(ReportVerb, LeavesNoHalfPageWhenTheDiskIsFull) {
  const Outcome outcome =
      test::run_program("sh", {"-c", R"(ulimit -f 8; exec "$0" report "$1" -o "$2")",
                               test::built("shardwise"), plan_, page_});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("cannot be written"));
  for (const auto& file : std::filesystem::directory_iterator(scratch_.folder())) {
    EXPECT_EQ(file.path(), plan_);
  }
}

TEST_F(ReportVerb, PrintsThePageAlone) {
  const Outcome outcome = report({plan_, "-o", "-"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::StartsWith("<!doctype html>\n"));
  EXPECT_THAT(outcome.out, testing::EndsWith("</html>\n"));
}

TEST_F(ReportVerb, WritesThePageOfAPlanThatDoesNotFit) {
  std::string text = test::bytes_of_file(plan_);
  const std::size_t at = text.find("\"hbm_bytes\": ") + 13;
  text.replace(at, text.find_first_of(",\n", at) - at, "1000000000");
  const Outcome outcome = report({scratch_.write_bytes("small.json", text), "-o", page_});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Does not fit: "));
  EXPECT_THAT(test::bytes_of_file(page_), HasSubstr("class=\"verdict bad\">Does not fit: "));
}

}  // namespace
}  // namespace shardwise::cli
