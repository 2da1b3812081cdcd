#include "planner/spec/plan/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/sha256.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

using testing::HasSubstr;

constexpr const char* kGolden = "tests/golden/plan.json";
constexpr const char* kMarker = "<script type=\"application/json\" id=\"plan\">\n";

Plan golden() { return *read_plan(kGolden); }

std::string page_with(const std::string& element) {
  return "<!doctype html>\n<title>a plan</title>\n" + element + "\n<p>after it</p>\n" +
         std::string(kPageDigestElement);
}

/// A page with an element of a plan without escapes, and the digest of its text.
std::string tied_page(const std::string& element) {
  const std::size_t begin = element.find(kMarker) + std::string(kMarker).size();
  const std::string text = element.substr(begin, element.find("</script>") - begin);
  return page_with("<code id=\"plan-sha256\">" + sha256(text) + "</code>\n" + element);
}

/// What is said of a page as it is.
std::string refused_as_it_is(const std::string& page) {
  const test::Scratch scratch;
  const Result<Plan> plan = read_plan(scratch.write_bytes("report.html", page));
  return plan ? "accepted" : to_string(plan.problems());
}

/// What is said of a page that has its own digest.
std::string refused_page(const std::string& page) {
  return refused_as_it_is(with_page_digest(page));
}

std::string with_crlf(const std::string& page) {
  std::string crlf;
  for (const char c : page) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return crlf;
}

TEST(PlanPage, GivesThePlanBackToTheByte) {
  const test::Scratch scratch;
  for (const char* name : {"gpt2", "</script><script>alert(1)</script>", "<!--<script>", "]]>",
                           "\\u003c", "</SCRIPT >", "a \"quoted\" & 'named' model"}) {
    Plan plan = golden();
    plan.model.name = name;
    plan.cluster.label = std::string_view(kMarker).substr(0, std::string_view(kMarker).size() - 1);
    const std::string file = scratch.write_bytes(
        "report.html", with_page_digest(page_with(plan_digest_element(plan) + plan_element(plan))));
    const Result<Plan> read = read_plan(file);
    ASSERT_TRUE(read.ok()) << to_string(read.problems());
    EXPECT_EQ(to_json(*read), to_json(plan)) << name;
    EXPECT_EQ(digest(*read), digest(plan)) << name;
  }
}

TEST(PlanPage, IsReadWithAByteOrderMarkAndWithOtherLineEnds) {
  const std::string element = plan_element(golden());
  const std::string page = with_page_digest(tied_page(element));
  const std::string crlf = with_crlf(page);
  EXPECT_EQ(refused_as_it_is("\xEF\xBB\xBF" + page), "accepted");
  EXPECT_EQ(refused_as_it_is(crlf), "accepted");
  EXPECT_EQ(refused_as_it_is("\xEF\xBB\xBF" + crlf), "accepted");
  std::string misspelt = element;
  const std::string wrong =
      with_crlf(tied_page(misspelt.replace(misspelt.find("\"layout\""), 8, "\"layuot\"")));
  const auto key = static_cast<std::ptrdiff_t>(wrong.find("\"layuot\""));
  const auto line = 1 + std::count(wrong.begin(), wrong.begin() + key, '\n');
  EXPECT_THAT(refused_page(wrong), HasSubstr("report.html:" + std::to_string(line) + ":"));
}

TEST(PlanPage, ThatWasCutOffIsAskedWhetherItIsComplete) {
  const std::string page = tied_page(plan_element(golden())) + "</html>\n";
  EXPECT_THAT(refused_page(page.substr(0, 20)), HasSubstr("is the file complete?"));
  EXPECT_THAT(refused_page(page.substr(0, page.size() / 2)), HasSubstr("is the file complete?"));
  EXPECT_THAT(refused_page("<html></html>"), testing::Not(HasSubstr("is the file complete?")));
}

TEST(PlanPage, HasNoCharacterThatTurnsItsText) {
  Plan plan = golden();
  plan.model.name = "a\u202Eb\u2066c\u200Fd\u2013";
  const std::string element = plan_element(plan);
  EXPECT_THAT(element, HasSubstr("a\\u202eb\\u2066c\\u200fd\u2013"));
  EXPECT_THAT(
      refused_page(page_with(plan_digest_element(plan) + element)),
      HasSubstr("/model/name: \"a\\u202eb\\u2066c\\u200fd\u2013\" has a control character"));
}

// A browser ends the element at the first "</script", and reads "<!--" as the begin of text in
// which it is not ended. HTML, "Restrictions for contents of script elements".
TEST(PlanPage, HasNoTagInItsElement) {
  Plan plan = golden();
  plan.model.name = "</script><!-- <script>";
  const std::string element = plan_element(plan);
  const std::string inside = element.substr(std::string(kMarker).size());
  EXPECT_EQ(inside.find('<'), inside.size() - std::string("</script>").size());
}

TEST(PlanPage, SaysTheLineOfThePage) {
  std::string element = plan_element(golden());
  const std::string key = "\"global_batch_size\": ";
  const std::size_t at = element.find(key) + key.size();
  element.insert(at, "-");
  const std::string page = tied_page(element);
  const auto line =
      1 +
      std::count(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(page.find(key)), '\n');
  EXPECT_THAT(refused_page(page), HasSubstr("report.html:" + std::to_string(line) + ":"));
  EXPECT_THAT(refused_page(page), HasSubstr("/job/global_batch_size"));
}

TEST(PlanPage, RefusesAPageWithoutAPlan) {
  EXPECT_THAT(refused_page(page_with("")), HasSubstr("report.html: a page without a plan\n"));
  EXPECT_THAT(refused_page("<svg></svg>"), HasSubstr("a page without a plan"));
}

TEST(PlanPage, RefusesASecondPlan) {
  const std::string element = plan_element(golden());
  EXPECT_THAT(refused_page(page_with(element + "\n" + element)),
              HasSubstr("a second plan in one page"));
}

// Defect N8: programs read a plan that the page does not have, as it stands in a comment.
TEST(PlanPage, RefusesAPlanThatABrowserDoesNotFind) {
  const std::string element = plan_element(golden());
  for (const auto& [before, behind] : std::vector<std::pair<std::string, std::string>>{
           {"<!-- ", " -->"},
           {"<!-- -- > --! ", ""},
           {"<!x ", ">"},
           {"<style>", "</style>"},
           {"<TEXTAREA>", "</TextArea >"},
           {"<noscript>", "</noscript>"},
           {"<template><p>", "</p></template>"},
           {"<template><template></template>", "</template>"},
           {"<script>", "</script>"},
           {"<script><!--<script></script>", "--></script>"},
           {"<svg><![CDATA[ > ", "]]></svg>"},
           {"<p title='", "'>"},
           {"<plaintext>", ""}}) {
    const std::string page = page_with(before + element + behind) + "</html>\n";
    EXPECT_THAT(refused_page(page),
                HasSubstr("report.html:3: a page without a plan: this one is inside a comment or "
                          "another element\n"))
        << before;
  }
}

TEST(PlanPage, ReadsTheOnePlanThatABrowserFinds) {
  Plan other = golden();
  other.job.global_batch_size *= 2;
  const std::string hidden = plan_element(other);
  const std::string element = plan_element(golden());
  const test::Scratch scratch;
  for (const std::string& before : std::vector<std::string>{
           "<!-- " + hidden + " -->", "<!-->", "<!--->", "<!---->", "<!-- --!>", "<!-- -- > --->",
           "<style>" + hidden.substr(0, 60) + "</style>", "<template>" + hidden + "</template>",
           "<p title=\"" + std::string("<!-- '") + "\">", std::string("<p a=<!-- b='>' / c>"),
           "<script><!--<script></script></script>-->" + std::string("</script>"), "< !-- </ p>",
           "<script id=plan type=\"text/plain\">{}</script>", "<div id=\"plan\"></div>",
           "<title><!--</title>", "<script>\"<!--\"</script>", "<?xml <!-- ?>"}) {
    const std::string page = page_with(before + plan_digest_element(golden()) + element);
    const Result<Plan> read = read_plan(scratch.write_bytes("report.html", with_page_digest(page)));
    ASSERT_TRUE(read.ok()) << before << to_string(read.problems());
    EXPECT_EQ(to_json(*read), to_json(golden())) << before;
  }
}

TEST(PlanPage, ReadsAnElementHoweverItsTagIsSpelt) {
  std::string page = tied_page(plan_element(golden()));
  const std::string marker = kMarker;
  page.replace(page.find(marker), marker.size(),
               "<SCRIPT id='plan' hidden\nTYPE = Application/JSON >");
  page.replace(page.find("</script>"), 9, "</Script\n>");
  EXPECT_EQ(refused_page(page), "accepted");
}

TEST(PlanPage, RefusesAPlanThatIsNotTheOneThePageShows) {
  Plan plan = golden();
  plan.model.name = "<a \\u003c \\\\u202e \u2013";
  const std::string shown = "<p>" + plan_digest_element(plan) + "</p>\n";
  const std::string page = page_with(shown + plan_element(plan));
  EXPECT_EQ(refused_page(page), "accepted");
  EXPECT_EQ(refused_as_it_is(with_crlf(with_page_digest(page))), "accepted");

  Plan edited = plan;
  edited.job.global_batch_size *= 2;
  EXPECT_THAT(refused_page(page_with(shown + plan_element(edited))),
              HasSubstr("report.html:4: the plan was changed: its SHA-256 is " + digest(edited) +
                        ", but the page shows the plan " + digest(plan) +
                        "\n    give the plan.json, or the page as shardwise report wrote it"));
  // Any of the plan's characters counts, and all digests that are shown.
  std::string spaced = page;
  spaced.insert(spaced.find("\"layout\""), " ");
  EXPECT_THAT(refused_page(spaced), HasSubstr("the plan was changed"));
  EXPECT_THAT(refused_page(page + "<code id=plan-sha256>\x1b[2J</code>"),
              testing::AllOf(HasSubstr("the plan was changed"), testing::Not(HasSubstr("\x1b"))));
}

// Defect N8: a digest that a browser does not show is none, and a page without one says nothing of
// the plan that is read from it.
TEST(PlanPage, RefusesAPageThatShowsNoDigest) {
  const std::string digest = plan_digest_element(golden());
  for (const std::string& before :
       {std::string(), "<!-- " + digest + " -->", "<template>" + digest + "</template>",
        "<textarea>" + digest + "</textarea>", "<code id=\"plan-sha255\">" + digest.substr(23)}) {
    EXPECT_THAT(refused_page(page_with(before + plan_element(golden()))),
                HasSubstr("report.html:3: the page shows no digest of its plan"))
        << before;
  }
}

// Defect N8: what a page showed beside its plan could be altered, and nothing said so.
TEST(PlanPage, RefusesAPageOfWhichAnyByteWasChanged) {
  const std::string page = with_page_digest(
      page_with("<td>12 ms</td>" + plan_digest_element(golden()) + plan_element(golden()) +
                json_element("layouts-data", R"({"rows": [{"values": [12]}]})")));
  EXPECT_EQ(refused_as_it_is(page), "accepted");
  EXPECT_EQ(with_page_digest(page), page);
  for (const char* part : {"<td>12 ms", "{\"rows\"", "a plan", "after it", "doctype"}) {
    std::string other = page;
    ++other.at(other.find(part) + 4);
    EXPECT_THAT(refused_as_it_is(other), HasSubstr("the page was changed: its SHA-256 is "))
        << part;
  }
  for (const std::string& other :
       {page + "<style>td { display: none }</style>", page + " ", " " + page}) {
    EXPECT_THAT(refused_as_it_is(other), HasSubstr("the page was changed: its SHA-256 is "));
  }
  std::string shown = page;
  shown.replace(shown.find("page-sha256\">") + 13, 64, "\x1b[2J");
  EXPECT_THAT(refused_as_it_is(shown),
              testing::AllOf(HasSubstr("the page was changed"), testing::Not(HasSubstr("\x1b"))));
}

TEST(PlanPage, RefusesAPageThatShowsNoDigestOfItself) {
  const std::string element = plan_digest_element(golden()) + plan_element(golden());
  const std::string digest(kPageDigestElement);
  for (const std::string& around :
       {std::string(), "<!-- " + digest + " -->", "<template>" + digest + "</template>"}) {
    EXPECT_THAT(refused_page(element + "\n" + around),
                HasSubstr("the page shows no digest of itself"))
        << around;
  }
  EXPECT_THAT(refused_page(page_with(element + digest)), HasSubstr("a second digest of one page"));
}

TEST(PlanPage, RefusesACutOffPage) {
  const std::string page = tied_page(plan_element(golden()));
  const std::size_t begin = page.find(kMarker) + std::string(kMarker).size();
  const std::size_t end = page.find("</script>");
  for (const std::size_t length : {begin, begin + 1, (begin + end) / 2, end, end + 8}) {
    EXPECT_THAT(refused_page(page.substr(0, length)), HasSubstr("the page ends inside its plan"))
        << length;
  }
}

TEST(PlanPage, RefusesAPlanOfAnotherVersion) {
  std::string element = plan_element(golden());
  const std::string schema = "shardwise.plan/1";
  element.replace(element.find(schema), schema.size(), "shardwise.plan/2");
  EXPECT_THAT(refused_page(tied_page(element)), HasSubstr("/schema"));
}

TEST(PlanPage, RefusesAPageLargerThanAReport) {
  std::string page = page_with(plan_element(golden()));
  page.append(kMostPageBytes, ' ');
  EXPECT_THAT(refused_page(page), HasSubstr("but a report has at most 16000000"));
}

TEST(PlanPage, TakesJsonForNoPage) {
  EXPECT_FALSE(is_page(to_json(golden())));
  EXPECT_FALSE(is_page(""));
  EXPECT_FALSE(is_page(" \n\t"));
  EXPECT_TRUE(is_page("\n <!doctype html>"));
}

}  // namespace
}  // namespace shardwise
