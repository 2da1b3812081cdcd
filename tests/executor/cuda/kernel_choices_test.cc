// The file of choices: what is kept, what is ignored, who may write it at once.
#include "executor/kernels/cuda/kernel_choices.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "planner/spec/text/error.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const KernelMachine kMachine = {"a GPU", 13000, 130100, 91900};

GemmChoice gemm_choice(std::uint64_t number) {
  GemmChoice choice;
  choice.algorithm = {number, 2, 3, ~std::uint64_t{0}, 5, 6, 7, 8};
  choice.workspace_bytes = 4096;
  choice.microseconds = 12.5;
  return choice;
}

KernelChoices some() {
  return {{{"one", gemm_choice(1)}, {"two", {}}}, {{"forward", {true, 3, 4}}, {"backward", {}}}};
}

TEST(KernelChoices, AreReadAsTheyWereWritten) {
  const Scratch folder;
  const std::string path = folder.path("new/folder/choices.json");
  write_kernel_choices(path, kMachine, some());
  const ReadKernelChoices read = read_kernel_choices(path, kMachine);
  EXPECT_EQ(read.ignored, "");
  EXPECT_EQ(read.choices, some());
}

TEST(KernelChoices, OfAMissingFileAreNoneAndNothingIsSaid) {
  const Scratch folder;
  const ReadKernelChoices read = read_kernel_choices(folder.path("none.json"), kMachine);
  EXPECT_EQ(read.ignored, "");
  EXPECT_EQ(read.choices, KernelChoices());
}

TEST(KernelChoices, OfAnotherGpuDriverOrLibraryAreIgnored) {
  const std::string text = to_json(kMachine, some());
  const auto ignored = [&](const KernelMachine& other) {
    const ReadKernelChoices read = parse_kernel_choices(text, "choices.json", other);
    EXPECT_EQ(read.choices, KernelChoices());
    EXPECT_THAT(read.ignored, Not(HasSubstr("\n")));
    return read.ignored;
  };
  EXPECT_EQ(ignored({"another\nGPU", 13000, 130100, 91900}),
            "kept kernel choices are ignored: choices.json: of \"a GPU\", CUDA 13000, cuBLASLt "
            "130100, cuDNN 91900, here \"another\\nGPU\", CUDA 13000, cuBLASLt 130100, cuDNN "
            "91900");
  EXPECT_THAT(ignored({"a GPU", 12080, 130100, 91900}), HasSubstr("here \"a GPU\", CUDA 12080"));
  EXPECT_THAT(ignored({"a GPU", 13000, 130200, 91900}), HasSubstr("cuBLASLt 130200"));
  EXPECT_THAT(ignored({"a GPU", 13000, 130100, 0}), HasSubstr("cuDNN 0"));
}

TEST(KernelChoices, OfADamagedFileAreIgnoredWithOneLine) {
  const Scratch folder;
  const std::string good = to_json(kMachine, some());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() / 2), replaced("choices/1", "choices/2"),
        replaced("0000000000000001", "000000000000000g"), replaced("0000000000000001", "1"),
        replaced("\"one\"", "\"two\""), replaced("4096", "-1"), replaced("4096", "1e300"),
        replaced("\"one\"", "\"" + std::string(300, 'x') + "\""), replaced("12.5", "\"soon\""),
        replaced("\"gpu\"", "\"cpu\""), replaced("\"cudnn\"", "\"cuda\""),
        replaced("\"forward\"", "\"backward\""), std::string(5'000'000, ' ')}) {
    const ReadKernelChoices read =
        read_kernel_choices(folder.write_bytes("bad.json", bad), kMachine);
    EXPECT_EQ(read.choices, KernelChoices()) << bad.substr(0, 200);
    EXPECT_THAT(read.ignored, HasSubstr("kept kernel choices are ignored: ")) << bad.substr(0, 200);
    EXPECT_THAT(read.ignored, Not(HasSubstr("\n")));
  }
}

TEST(KernelChoices, OfALinkAFolderOrAPipeAreIgnored) {
  const Scratch folder;
  const std::string good = folder.write_bytes("good.json", to_json(kMachine, some()));
  std::filesystem::create_symlink(good, folder.path("link"));
  std::filesystem::create_directory(folder.path("folder"));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  for (const char* const name : {"link", "folder", "pipe"}) {
    EXPECT_THAT(read_kernel_choices(folder.path(name), kMachine).ignored,
                HasSubstr(folder.path(name) + ": a "));
  }
  EXPECT_THROW(write_kernel_choices(folder.path("link"), kMachine, some()), IoError);
  EXPECT_EQ(bytes_of_file(good), to_json(kMachine, some()));
}

TEST(KernelChoices, AreAddedToThoseOfTheFile) {
  const Scratch folder;
  const std::string path = folder.path("choices.json");
  write_kernel_choices(path, kMachine, {{{"one", gemm_choice(1)}}, {}});
  write_kernel_choices(path, kMachine, {{{"two", gemm_choice(2)}}, {{"forward", {}}}});
  write_kernel_choices(path, kMachine, {{{"one", gemm_choice(3)}}, {}});
  const KernelChoices all = read_kernel_choices(path, kMachine).choices;
  const KernelChoices expected = {{{"one", gemm_choice(3)}, {"two", gemm_choice(2)}},
                                  {{"forward", {}}}};
  EXPECT_EQ(all, expected);
}

TEST(KernelChoices, ReplaceAFileThatIsDamagedOrOfAnotherMachine) {
  const Scratch folder;
  const std::string path = folder.write_bytes("choices.json", "{");
  write_kernel_choices(path, kMachine, some());
  EXPECT_EQ(read_kernel_choices(path, kMachine).choices, some());
  write_kernel_choices(path, {"another", 13000, 130100, 0}, {});
  EXPECT_THAT(read_kernel_choices(path, kMachine).ignored, HasSubstr("another"));
}

TEST(KernelChoices, AreThoseOfThisRunWhereAllTogetherWouldNotBeRead) {
  const Scratch folder;
  const std::string path = folder.path("choices.json");
  GemmChoices many;
  for (int i = 0; i < 10000; ++i) many.emplace(std::to_string(i), GemmChoice());
  write_kernel_choices(path, kMachine, {many, {}});
  ASSERT_THAT(read_kernel_choices(path, kMachine).choices.products, SizeIs(10000));
  GemmChoices more;
  for (int i = 0; i < 4000; ++i) more.emplace("of this run " + std::to_string(i), GemmChoice());
  write_kernel_choices(path, kMachine, {more, {}});
  EXPECT_THAT(read_kernel_choices(path, kMachine).choices.products, SizeIs(4000));
}

// Ranks as threads, and processes, of several jobs.
TEST(KernelChoices, AreWholeWhoeverWritesAtOnce) {
  const Scratch folder;
  const std::string path = folder.path("choices.json");
  const auto writes = [&](int number) {
    const std::string name = "of thread " + std::to_string(number);
    for (int i = 0; i < 20; ++i) {
      write_kernel_choices(path, kMachine, {{{name, gemm_choice(1)}}, {}});
      const ReadKernelChoices read = read_kernel_choices(path, kMachine);
      EXPECT_EQ(read.ignored, "");
      EXPECT_FALSE(read.choices.products.empty());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(writes, i);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.folder()), {}), 1);
}

TEST(KernelChoices, ThatCannotBeWrittenNameTheFolder) {
  const Scratch folder;
  const std::string file = folder.write_bytes("file", "");
  try {
    write_kernel_choices(file + "/choices.json", kMachine, some());
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file));
  }
}

/// The folder, with variables of the environment as given: null for none.
std::string folder_with(const char* choices, const char* cache, const char* home) {
  const char* const names[] = {"SHARDWISE_KERNEL_CHOICES", "XDG_CACHE_HOME", "HOME"};
  const char* const values[] = {choices, cache, home};
  std::optional<std::string> before[3];
  for (int i = 0; i < 3; ++i) {
    if (const char* const was = std::getenv(names[i]); was != nullptr) before[i] = was;
    ::unsetenv(names[i]);
    if (values[i] != nullptr) ::setenv(names[i], values[i], 1);
  }
  std::string folder = kernel_choices_folder();
  for (int i = 0; i < 3; ++i) {
    ::unsetenv(names[i]);
    if (before[i]) ::setenv(names[i], before[i]->c_str(), 1);
  }
  return folder;
}

TEST(KernelChoices, LieWhereTheEnvironmentSays) {
  EXPECT_EQ(folder_with("/a", "/b", "/c"), "/a");
  EXPECT_EQ(folder_with("off", "/b", "/c"), "");
  EXPECT_EQ(folder_with(nullptr, "/b", "/c"), "/b/shardwise");
  EXPECT_EQ(folder_with(nullptr, "b", "/c"), "/c/.cache/shardwise");
  EXPECT_EQ(folder_with(nullptr, nullptr, "/c"), "/c/.cache/shardwise");
  EXPECT_EQ(folder_with(nullptr, nullptr, nullptr), "");
}

// Defect N3: below the home of another user, or behind a link, nothing is kept.
TEST(KernelChoices, HaveNoFolderBehindALinkOrWhereOthersMayWrite) {
  const Scratch home;
  std::filesystem::create_directories(home.path("real"));
  EXPECT_EQ(folder_with(nullptr, nullptr, home.path("real").c_str()),
            home.path("real/.cache/shardwise"));
  std::filesystem::create_directory_symlink("/nowhere", home.path("real/.cache"));
  EXPECT_EQ(folder_with(nullptr, nullptr, home.path("real").c_str()), "");
  std::filesystem::create_directories(home.path("open/shardwise"));
  std::filesystem::permissions(home.path("open/shardwise"), std::filesystem::perms::all);
  EXPECT_EQ(folder_with(nullptr, home.path("open").c_str(), nullptr), "");
}

TEST(KernelChoices, HaveAFileForEachMachine) {
  EXPECT_EQ(kernel_choices_file({"NVIDIA H100/80GB ../x", 13000, 130100, 91900}),
            "kernels_nvidia-h100-80gb----x_cuda-13000_cublaslt-130100_cudnn-91900.json");
  EXPECT_THAT(kernel_choices_file({std::string(1000, 'x'), 1, 2, 3}), SizeIs(testing::Lt(200U)));
}

}  // namespace
}  // namespace shardwise::exec::test
