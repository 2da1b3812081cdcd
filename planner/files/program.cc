#include "planner/files/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "planner/files/process_memory.h"
#include "planner/files/process_time.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kLongestFailure = 300;

/// Gives the closed ones of descriptors 0 to 2 to a device, opened so that using it fails.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one: those below are open by now.
    static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

/// Closes standard output. \returns 0, or the error that kept it from taking all that was written
int close_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fclose(stdout) != 0) return errno != 0 ? errno : EIO;
  return failed_before ? EIO : 0;
}

}  // namespace

void print_error(std::string_view text) noexcept {
  // Standard error has no buffer: one write keeps a line whole among those of other threads.
  std::array<char, 4096> line{};
  const bool whole = text.size() < line.size();
  if (whole) {
    std::copy(text.begin(), text.end(), line.begin());
    line[text.size()] = '\n';
  }
  std::fwrite(whole ? line.data() : text.data(), 1, text.size() + (whole ? 1 : 0), stderr);
  if (!whole) std::fputc('\n', stderr);
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargest = 32 << 20;  // that the allocator takes from what it keeps
  constexpr int kKept = 512 << 20;
  constexpr int kAtOnce = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_TOP_PAD, kAtOnce);
#endif
}

int run_program(std::string_view name, const std::function<int()>& body) {
  std::signal(SIGXFSZ, SIG_IGN);  // beyond the limit of a file's size writing fails, with a reason
  occupy_standard_streams();
  answer_processor_limit(std::string(name));
  // One that was started by its descriptor would be listed by that number.
  ::prctl(PR_SET_NAME, std::string(name).c_str());
  int code = kEnvironmentFailure;
  std::string failure;
  int reason = 0;  // of the system
  try {
    code = body();
  } catch (const std::system_error& broken) {  // fmt::print throws it, too
    failure = broken.what();
    reason = broken.code().value();
  } catch (const std::bad_alloc&) {
    failure = out_of_memory();
  } catch (const std::exception& broken) {
    failure = broken.what();
  }
  if (const int error = close_output(); error != 0) {
    failure = fmt::format("standard output cannot be written: {}",
                          std::strerror(reason != 0 ? reason : error));
    code = kEnvironmentFailure;
  }
  if (!failure.empty()) print_error(fmt::format("{}: {}", name, shown(failure, kLongestFailure)));
  return std::ferror(stderr) == 0 ? code : kEnvironmentFailure;
}

}  // namespace shardwise
