#include "cli/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <system_error>

#include "planner/spec/error.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  throw IoError(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

/// \returns 0, or the error that stopped it
int write_all(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return 0;
  return errno != 0 ? errno : EIO;
}

/// Signals that end a program whose user is done with it.
constexpr std::array<int, 3> kEnding = {SIGINT, SIGTERM, SIGHUP};

/// Keeps them waiting as long as it lives.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int each : kEnding) sigaddset(&ending, each);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

std::atomic<const FilesTogether*> open_files = nullptr;

/// Ends the program as the signal would have, without what was not kept.
void end_by(int ending) {
  if (const FilesTogether* files = open_files) files->take_away();
  std::signal(ending, SIG_DFL);
  std::raise(ending);  // once the handler has returned
}

}  // namespace

FilesTogether::FilesTogether() {
  for (const int ending : kEnding) {
    struct sigaction now = {};
    // What somebody chose to ignore, as nohup does, stays ignored.
    if (::sigaction(ending, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    now.sa_handler = end_by;
    ::sigaction(ending, &now, nullptr);
  }
  open_files = this;
}

FilesTogether::~FilesTogether() {
  const SignalsHeld held;
  open_files = nullptr;
  take_away();
}

void FilesTogether::take_away() const noexcept {
  for (const Written& file : written_) ::unlink(file.beside.c_str());
  // Those in which somebody else wrote meanwhile are not empty, and stay.
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
}

void FilesTogether::add_folder(const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  add_folder(path.parent_path());
  {
    const SignalsHeld held;
    if (fs::create_directory(path, error)) made_.push_back(path);
  }
  if (error || !fs::is_directory(path)) {
    throw IoError(fmt::format("{}: cannot be made: {}", path.string(),
                              error ? error.message() : "there is a file of that name"));
  }
}

void FilesTogether::add(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  if (fs::is_directory(there)) fail(path, EISDIR);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    const int error = write_all(path, text);
    if (error != 0) fail(path, error);
    return;
  }
  {
    const SignalsHeld held;
    written_.push_back({path, fmt::format("{}.{}.part", path, ::getpid())});
  }
  const int error = write_all(written_.back().beside, text);
  if (error != 0) fail(path, error);
}

void FilesTogether::keep() {
  const SignalsHeld held;
  made_.clear();
  std::error_code error;
  for (const Written& file : written_) {
    fs::rename(file.beside, file.path, error);
    if (error) fail(file.path, error.value());
  }
  written_.clear();
}

void write_file(const std::string& path, const std::string& text) {
  FilesTogether files;
  files.add(path, text);
  files.keep();
}

}  // namespace shardwise::cli
