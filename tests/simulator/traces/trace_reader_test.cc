#include "simulator/traces/trace_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/simulator/traces/text_source.h"

namespace shardwise::sim {
namespace {

using testing::HasSubstr;

std::vector<TraceEvent> events_of(const std::string& text, std::size_t piece = 1 << 20) {
  std::vector<TraceEvent> events;
  const auto head =
      read_trace_events(source_of(text, piece), "t.json", [&](const TraceEvent& each) {
        events.push_back(each);
        return true;
      });
  EXPECT_TRUE(head.ok()) << to_string(head.problems());
  return events;
}

Diagnostic problem_of(const std::string& text) {
  const auto head =
      read_trace_events(source_of(text), "t.json", [](const TraceEvent&) { return true; });
  EXPECT_FALSE(head.ok());
  return head.ok() ? Diagnostic() : head.problems().front();
}

constexpr const char* kEvent =
    R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1712195495505583.123,
        "dur": 4.5, "args": {"correlation": 18446744073709551615, "grid": [1, 2, {"a": 3}],
        "Collective name": "_allgather_base"}})";

TEST(TraceReader, KeepsNanosecondsOfTimesSince1970) {
  const auto events = events_of(std::string("[") + kEvent + "]");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].start_ns, 1712195495505583123);  // as a double it would end in 000
  EXPECT_EQ(events[0].duration_ns, 4500);
}

TEST(TraceReader, ReadsTheSameFromPiecesOfAnySize) {
  const std::string text = std::string("{\"traceEvents\": [") + kEvent + ",\n" + kEvent + "]}";
  for (const std::size_t piece : {1U, 2U, 7U, 1000U}) {
    const auto events = events_of(text, piece);
    ASSERT_EQ(events.size(), 2U) << piece;
    EXPECT_EQ(events[1].name, "gemm");
    EXPECT_EQ(events[1].category, "kernel");
    EXPECT_EQ(events[1].collective, "_allgather_base");
    EXPECT_EQ(events[1].thread, 7);
    EXPECT_EQ(events[1].line, 4);
  }
}

TEST(TraceReader, TakesTheNextEventWithoutWhatTheOneBeforeHad) {
  const auto events = events_of(std::string("[") + kEvent + R"(, {"ph": "i", "pid": "Traces"}])");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_FALSE(events[1].timed);
  EXPECT_EQ(events[1].duration_ns, -1);
  EXPECT_EQ(events[1].process, -1);
  EXPECT_EQ(events[1].collective, "");
}

TEST(TraceReader, SaysWhereATruncatedTraceEnds) {
  const Diagnostic problem = problem_of("{\"traceEvents\": [\n{\"ph\": \"X\", \"na");
  EXPECT_EQ(problem.line, 2);
  EXPECT_EQ(problem.column, 15);
  EXPECT_THAT(problem.message, HasSubstr("not JSON"));
  EXPECT_EQ(problem.hint, "the text ends too early: was the trace written to its end?");
}

TEST(TraceReader, CountsTheColumnAcrossPieces) {
  const std::string text = "[\n{\"name\": \"a\", ?";
  for (const std::size_t piece : {1U, 5U, 100U}) {
    const auto head =
        read_trace_events(source_of(text, piece), "t.json", [](const TraceEvent&) { return true; });
    ASSERT_FALSE(head.ok());
    EXPECT_EQ(head.problems().front().line, 2) << piece;
    EXPECT_EQ(head.problems().front().column, 15) << piece;
  }
}

TEST(TraceReader, RefusesTimesThatAreNone) {
  for (const char* time : {"\"soon\"", "null", "true", "[]", "{}", "1e300", "4e15", "-4e15",
                           "18446744073709551615", "3000000000000000.5"}) {
    const Diagnostic problem = problem_of(fmt::format("[{{\"ph\": \"X\", \"ts\": {}}}]", time));
    EXPECT_EQ(problem.message, "ts of an event is not a time") << time;
  }
  EXPECT_EQ(problem_of(R"([{"dur": -1}])").message, "dur of an event is not a time");
}

TEST(TraceReader, RefusesWhatIsNoTrace) {
  EXPECT_THAT(problem_of("{\"schema\": \"shardwise.report/1\"}").message,
              HasSubstr("traceEvents is missing"));
  EXPECT_THAT(problem_of("12").message, HasSubstr("traceEvents is missing"));
  for (const char* const events : {"{}", "7", "null", "\"x\""}) {
    const Diagnostic wrong = problem_of(std::string("{\n\"traceEvents\": ") + events + "}");
    EXPECT_EQ(wrong.message, "traceEvents is no list") << events;
    EXPECT_EQ(wrong.line, 2) << events;
  }
  EXPECT_EQ(problem_of(std::string("\0\1\2\xff\xfe", 5)).message,
            "no text: it begins with the byte 0x00");
  EXPECT_EQ(problem_of("\xff\xfe[").message, "no text: it begins with the byte 0xff");
  EXPECT_EQ(problem_of("").message, "the file is empty");
  EXPECT_THAT(problem_of("[NaN]").message, HasSubstr("not JSON"));
  EXPECT_EQ(problem_of(std::string(100, '[')).message, "nested deeper than 64 levels");
}

TEST(TraceReader, CountsColumnsWhereANumberEnds) {
  for (const std::size_t piece : {1U, 5U, 100U}) {
    const std::string text = "[1,\n2 3\n]";
    const auto head =
        read_trace_events(source_of(text, piece), "t.json", [](const TraceEvent&) { return true; });
    ASSERT_FALSE(head.ok());
    EXPECT_EQ(head.problems().front().line, 2) << piece;
    EXPECT_EQ(head.problems().front().column, 3) << piece;
    EXPECT_EQ(head.problems().front().hint, "");
  }
}

TEST(TraceReader, TakesAByteOrderMark) {
  EXPECT_EQ(events_of("\xEF\xBB\xBF[{\"ph\": \"X\"}]").size(), 1U);
}

TEST(TraceReader, HoldsNoMoreOfManyEmptyEventsInMemory) {
  std::size_t given = 0;
  const ByteSource endless = [&given](char* into, std::size_t room) {
    if (given == 0) {
      *into = '[';
      return given = 1;
    }
    const std::size_t count = room / 3 * 3;
    for (std::size_t i = 0; i < count; i += 3) std::copy_n("{},", 3, into + i);
    given += count;
    return count;
  };
  const auto head = read_trace_events(endless, "t.json", [](const TraceEvent&) { return true; });
  ASSERT_FALSE(head.ok());
  EXPECT_EQ(head.problems().front().message, "16 MiB in which no text and no number ends");
  EXPECT_LT(given, std::size_t{20} << 20);
}

TEST(TraceReader, HoldsNoValueOfAnySizeInMemory) {
  std::size_t given = 0;
  const ByteSource endless = [&given](char* into, std::size_t room) {
    std::fill(into, into + room, given == 0 ? '"' : 'a');
    if (given == 0) into[1] = 'a', room = 2;
    given += room;
    return room;
  };
  const auto head = read_trace_events(endless, "t.json", [](const TraceEvent&) { return true; });
  ASSERT_FALSE(head.ok());
  EXPECT_EQ(head.problems().front().message, "16 MiB in which no text and no number ends");
  EXPECT_LT(given, std::size_t{20} << 20);
}

TEST(TraceReader, StopsWhenToldTo) {
  int seen = 0;
  const std::string text = "[{}, {}, {}]";
  (void)read_trace_events(source_of(text), "t.json", [&](const TraceEvent&) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace shardwise::sim
