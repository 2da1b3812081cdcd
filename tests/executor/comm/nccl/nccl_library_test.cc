// NCCL is opened when it is needed, and how it is used is settable and printed.
#include "executor/comm/nccl/nccl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/nccl/nccl_policy.h"
#include "executor/device/nvidia_library.h"
#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

TEST(NcclLibrary, SaysWhereItLookedWhenItIsNotThere) {
  try {
    NcclLibrary::open({"/nowhere", "/also/nowhere"});
    FAIL() << "opened it";
  } catch (const IoError& refused) {
    EXPECT_THAT(refused.what(),
                testing::MatchesRegex("no libnccl.so.2 on this machine .pip install "
                                      "nvidia-nccl-cu1[23], or name its folder by --libraries.; "
                                      "looked in /nowhere, /also/nowhere"));
  }
}

TEST(NcclLibrary, RefusesAVersionThatIsTooOldAndNamesBoth) {
  NcclCalls calls;
  calls.get_version = [](int* version) {
    *version = NCCL_VERSION(2, 15, 5);
    return ncclSuccess;
  };
  try {
    const NcclLibrary library(calls, "/old/libnccl.so.2");
    FAIL() << "took it";
  } catch (const NcclError& refused) {
    EXPECT_STREQ(refused.what(),
                 "NCCL 2.15.5 (/old/libnccl.so.2) is too old; 2.18.1 or later is needed");
  }
}

// Without a GPU the library opens, tells its version and draws identifiers.
TEST(NcclLibrary, OpensTheOneOfThisMachine) {
  std::string lacking;
  try {
    const NcclLibrary library = NcclLibrary::open();
    EXPECT_GE(library.version(), NCCL_VERSION(2, 18, 1));
    EXPECT_THAT(library.describe(), testing::MatchesRegex("NCCL 2[.][0-9]+[.][0-9]+ .*libnccl.*"));
    EXPECT_STREQ(library.calls().get_error_string(ncclInvalidUsage),
                 "invalid usage (run with NCCL_DEBUG=WARN for details)");
  } catch (const IoError& none) {
    lacking = none.what();
  }
  if (!lacking.empty()) GTEST_SKIP() << lacking;
}

/// Has a variable of the environment for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const was = std::getenv(name)) was_ = was;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (was_) {
      setenv(name_, was_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> was_;
};

// pip has a folder for NCCL, or, from CUDA 13 on, one for all of the toolkit; conda its own too.
TEST(NvidiaLibrary, IsLookedForInTheActiveEnvironments) {
  const shardwise::test::Scratch scratch;
  const std::string python = "/lib/python3.11/site-packages/nvidia/";
  const std::string one = scratch.path("one");
  const std::string other = scratch.path("other");
  const std::vector<std::string> expected = {one + python + "nccl/lib", one + python + "cu13/lib",
                                             other + "/lib", other + python + "cu13/lib"};
  for (const std::string& folder : expected) std::filesystem::create_directories(folder);
  std::filesystem::create_directories(one + python + "cudnn/lib");
  const Variable virtual_environment("VIRTUAL_ENV", one);
  const Variable conda("CONDA_PREFIX", other);
  const std::vector<std::string> found = NcclLibrary::default_folders();
  ASSERT_GT(found.size(), expected.size());
  EXPECT_EQ(found.back(), NvidiaLibrary::kPython);
  EXPECT_EQ(std::vector<std::string>(found.end() - std::ssize(expected) - 1, found.end() - 1),
            expected);
}

/// What opening NCCL says, where only --libraries and python3 may have it.
std::string looked_for(const std::string& first) {
  NvidiaLibrary::look_first_in(first);
  std::string said;
  try {
    NcclLibrary::open(first.empty() ? std::vector<std::string>{NvidiaLibrary::kPython}
                                    : std::vector<std::string>{first});
  } catch (const IoError& none) {
    said = none.what();
  }
  NvidiaLibrary::look_first_in("");
  return said;
}

TEST(NvidiaLibrary, IsLookedForBelowTheFolderThatIsNamed) {
  for (const std::string below : {"", "/lib", "/nccl/lib", "/nvidia/nccl/lib", "/nvidia/cu13/lib",
                                  "/lib/python3.11/site-packages/nvidia/nccl/lib"}) {
    const shardwise::test::Scratch scratch;
    const std::string folder = scratch.folder().string();
    EXPECT_THAT(looked_for(folder), testing::EndsWith("looked in " + folder));
    std::filesystem::create_directories(folder + below);
    scratch.write_bytes((below + "/libnccl.so.2").substr(1), "no library");
    EXPECT_THAT(looked_for(folder), testing::HasSubstr(below + "/libnccl.so.2: file too short"))
        << below;
  }
}

// As root after sudo -E, with the VIRTUAL_ENV of another user.
TEST(NvidiaLibrary, OfAnotherUserIsRefusedByRootInAnyFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const shardwise::test::Scratch scratch;
  const std::string folder = scratch.folder().string();
  const std::string file = scratch.write_bytes("libnccl.so.2", "no library");
  ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  try {
    NcclLibrary::open({folder});
    FAIL() << "opened it";
  } catch (const IoError& refused) {
    EXPECT_THAT(refused.what(),
                testing::AllOf(testing::StartsWith(file + " is not trusted: it belongs to another "
                                                          "user (owner "),
                               testing::HasSubstr("; run as its owner, close it to others, or pip "
                                                  "install nvidia-nccl-cu")));
  }
}

// Whoever may write the file or its folder would run in this process.
TEST(NvidiaLibrary, IsRefusedWhereOthersMayWriteIt) {
  const shardwise::test::Scratch scratch;
  const std::string folder = scratch.folder().string();
  const std::string file = scratch.write_bytes("libnccl.so.2", "no library");
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  EXPECT_THAT(looked_for(folder), testing::HasSubstr("it may be written by others"));
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  std::filesystem::permissions(folder, std::filesystem::perms(0777));
  EXPECT_THAT(looked_for(folder), testing::HasSubstr("its folder may be written by others"));
}

// Defect N6: a library in the current folder, which anybody may have put there, was loaded.
TEST(NvidiaLibrary, IsNotLookedForBelowTheCurrentFolder) {
  const shardwise::test::Scratch scratch;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(
      scratch.path("venv/lib/python3.11/site-packages/nvidia/nccl/lib"));
  std::filesystem::create_directories(scratch.path("lib/python3.11/site-packages/nvidia/nccl/lib"));
  for (const char* const root : {"", "venv", "./venv", "."}) {
    const Variable virtual_environment("VIRTUAL_ENV", root);
    const Variable conda("CONDA_PREFIX", root);
    const Variable home("CUDA_HOME", root);
    const Variable path("CUDA_PATH", root);
    std::filesystem::current_path(scratch.folder());
    const std::vector<std::string> found = NcclLibrary::default_folders();
    std::filesystem::current_path(before);
    // The first is the loader's own search path.
    EXPECT_EQ(found, (std::vector<std::string>{"", "/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                               NvidiaLibrary::kPython}))
        << root;
  }
}

/// The files that are mapped into this process, as libraries are.
std::vector<std::string> mapped_files() {
  std::vector<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at != std::string::npos) files.push_back(line.substr(at));
  }
  return files;
}

// The same with a library that does load: it is mapped for an absolute VIRTUAL_ENV alone.
TEST(NvidiaLibrary, OfTheCurrentFolderIsNotLoaded) {
  std::string library;  // any that this process has
  for (const std::string& each : mapped_files()) {
    if (each.find("/libm.so") != std::string::npos) library = each;
  }
  if (library.empty()) GTEST_SKIP() << "this program has no libm.so to plant";
  const NvidiaLibrary::Name name = {{"libshardwise_planted.so.2"}, "nccl", "a wheel"};
  const shardwise::test::Scratch scratch;
  for (const std::string below : {"lib", "venv/lib"}) {
    const std::string folder = scratch.path(below + "/python3.11/site-packages/nvidia/nccl/lib");
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(library, folder + "/" + name.files.front());
  }
  const std::filesystem::path before = std::filesystem::current_path();
  for (const std::string& root : {std::string(), std::string("venv"), scratch.path("venv")}) {
    const Variable virtual_environment("VIRTUAL_ENV", root);
    const Variable conda("CONDA_PREFIX", root);
    std::filesystem::current_path(scratch.folder());
    std::string said = "opened it";
    try {
      const NvidiaLibrary opened(name, NvidiaLibrary::default_folders(name.package));
    } catch (const IoError& problem) {
      said = problem.what();
    }
    std::filesystem::current_path(before);
    const std::string planted = scratch.folder().filename().string();
    const bool loaded =
        testing::Value(mapped_files(), testing::Contains(testing::HasSubstr(planted)));
    EXPECT_EQ(loaded, root.starts_with('/')) << root << said;
  }
}

TEST(NcclPolicy, ReadsWhatItWrites) {
  NcclPolicy policy;
  EXPECT_EQ(*parse_nccl_policy(""), policy);
  EXPECT_EQ(to_string(policy),
            "min_ctas=0,max_ctas=0,separate_all_gather=on,register_buffers=off,"
            "symmetric_windows=off");
  policy.min_ctas = 2;
  policy.max_ctas = 16;
  policy.separate_all_gather = false;
  policy.symmetric_windows = true;
  policy.cta_policy = "efficiency";
  policy.algorithm = "ring";
  policy.protocol = "ll128";
  EXPECT_EQ(*parse_nccl_policy(to_string(policy)), policy);
}

TEST(NcclPolicy, RefusesUnknownFieldsAndValues) {
  const auto said = [](const char* text) {
    const Result<NcclPolicy> read = parse_nccl_policy(text);
    return read ? std::string("read") : to_string(read.problems().front());
  };
  EXPECT_THAT(said("max_ctas=65"), testing::HasSubstr("--nccl: max_ctas=65 is not known\n    use 0 "
                                                      "(NCCL's choice) to 64"));
  EXPECT_THAT(said("ctas=2"), testing::HasSubstr("use min_ctas, max_ctas, separate_all_gather"));
  EXPECT_THAT(
      said("algorithm=rign"),
      testing::HasSubstr("use ring, tree, collnetdirect, collnetchain, nvls, nvlstree, pat"));
  EXPECT_THAT(said("protocol=l128"), testing::HasSubstr("use simple, ll, ll128"));
  EXPECT_THAT(said("cta_policy=few"), testing::HasSubstr("use default, efficiency, zero"));
  EXPECT_THAT(said("register_buffers=yes"), testing::HasSubstr("use on or off"));
  EXPECT_THAT(said("min_ctas=8,max_ctas=4"),
              testing::HasSubstr("min_ctas 8 is more than max_ctas 4"));
}

}  // namespace
}  // namespace shardwise::exec
