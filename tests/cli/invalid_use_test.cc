// Every command line under tests/invalid/command/ (x.args, one argument a line) must end with exit
// code 2, nothing on standard output, and exactly the text of x.txt on standard error, once its
// <lists> are filled in (tests/support/placeholders.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/cli/command.h"
#include "tests/support/placeholders.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> command_lines() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator("tests/invalid/command")) {
    if (entry.path().extension() == ".args") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class InvalidUse : public testing::TestWithParam<fs::path> {};

TEST_P(InvalidUse, ExitsWithTwoAndTheExactMessage) {
  std::vector<std::string> arguments;
  std::ifstream lines(GetParam());
  for (std::string line; std::getline(lines, line);) arguments.push_back(line);

  std::ifstream text(fs::path(GetParam()).replace_extension(".txt"));
  const std::string expected((std::istreambuf_iterator<char>(text)),
                             std::istreambuf_iterator<char>());

  const Outcome outcome = shardwise(arguments);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, testing::IsEmpty());
  EXPECT_EQ(outcome.err, test::filled(expected));
}

INSTANTIATE_TEST_SUITE_P(Lines, InvalidUse, testing::ValuesIn(command_lines()),
                         [](const auto& each) { return each.param.stem().string(); });

}  // namespace
}  // namespace shardwise::cli
