#include "planner/files/atomic_file_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "planner/files/output_place.h"
#include "planner/spec/text/error.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  const std::string name = path == "-" ? "standard output" : path;
  throw IoError(fmt::format("{}: cannot be written: {}", name, reason));
}

/// Signals that end a program whose user is done with it.
constexpr std::array<int, 3> kEnding = {SIGINT, SIGTERM, SIGHUP};
/// And those that have handlers of their own (BoundedTime).
constexpr std::array<int, 4> kHeld = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};

/// Keeps all of these waiting as long as it lives.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int each : kHeld) sigaddset(&ending, each);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

std::atomic<const AtomicFileSet*> open_files = nullptr;

/// While a set changes, no handler looks at it: not in this thread, and in no other.
class Change {
 public:
  explicit Change(const AtomicFileSet* set) : set_(set) { open_files = nullptr; }
  ~Change() { open_files = set_; }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  SignalsHeld held_;
  const AtomicFileSet* set_;
};

/// Ends the program as the signal would have, without what was not kept.
void end_by(int ending) {
  discard_open_files();
  std::signal(ending, SIG_DFL);
  std::raise(ending);  // once the handler has returned
}

void write_stream(const std::string& path, const std::string& text) {
  const OutputPlace place = find_output(path);
  const auto bytes = std::as_bytes(std::span(text));
  if (place.kind == OutputPlace::Kind::descriptor) {
    std::fflush(stdout);  // what was printed comes first
    const int file = place.descriptor == STDOUT_FILENO ? standard_output() : place.descriptor;
    if (const int error = write_bytes(file, bytes); error != 0) fail(path, std::strerror(error));
    return;
  }
  const int file = open_stream(path, place.path);
  int error = write_bytes(file, bytes);
  if (::close(file) != 0 && error == 0) error = errno;
  if (error != 0) fail(path, std::strerror(error));
}

}  // namespace

void discard_open_files() noexcept {
  if (const AtomicFileSet* files = open_files) files->discard();
}

int open_stream(const std::string& path, const std::string& place) {
  constexpr int kTries = 60;
  constexpr int kPauseMs = 50;
  for (int i = 0;; ++i) {
    const int file = ::open(place.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file >= 0) {
      const int flags = ::fcntl(file, F_GETFL);
      struct stat facts = {};
      const bool block = ::fstat(file, &facts) == 0 && S_ISBLK(facts.st_mode);
      if (!block && flags >= 0 && ::fcntl(file, F_SETFL, flags & ~O_NONBLOCK) == 0) return file;
      ::close(file);
      fail(path, block ? "a disk, not a file" : std::strerror(errno));
    }
    if (errno == ENXIO && i == kTries) fail(path, "no program reads this pipe");
    if (errno != ENXIO) fail(path, std::strerror(errno));
    ::poll(nullptr, 0, kPauseMs);
  }
}

AtomicFileSet::AtomicFileSet() {
  for (const int ending : kEnding) {
    struct sigaction now = {};
    // What somebody chose to ignore, as nohup does, stays ignored.
    if (::sigaction(ending, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    now.sa_handler = end_by;
    ::sigaction(ending, &now, nullptr);
  }
  open_files = this;
}

AtomicFileSet::~AtomicFileSet() {
  const SignalsHeld held;
  open_files = nullptr;
  files_.clear();  // before the folders that they are in
  discard();
}

void AtomicFileSet::discard() const noexcept {
  for (const AtomicFile& file : files_) file.discard();
  // Those in which somebody else wrote meanwhile are not empty, and stay.
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
}

void AtomicFileSet::add_folder(const std::string& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  add_folder(fs::path(path).parent_path().string());
  {
    const Change change(this);
    if (fs::create_directory(path, error)) made_.push_back(path);
  }
  if (error || !fs::is_directory(path)) {
    throw IoError(fmt::format("{}: cannot be made: {}", path,
                              error ? error.message() : "there is a file of that name"));
  }
}

void AtomicFileSet::add(const std::string& path, const std::string& text) {
  const OutputPlace place = find_output(path);
  if (place.kind == OutputPlace::Kind::folder) fail(path, std::strerror(EISDIR));
  if (place.kind != OutputPlace::Kind::regular) {
    streams_.push_back({path, text});
    return;
  }
  {
    const Change change(this);
    files_.emplace_back(path);
  }
  files_.back().write(text);
  files_.back().finish();
}

void AtomicFileSet::keep() {
  for (const Streamed& each : streams_) write_stream(each.path, each.text);
  const Change change(this);
  std::set<std::string> folders;
  for (AtomicFile& file : files_) {
    file.publish();
    folders.insert(file.folder());
  }
  for (const std::string& made : made_) folders.insert(fs::path(made).parent_path().string());
  made_.clear();
  files_.clear();
  for (const std::string& folder : folders) sync_folder(folder);
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFileSet files;
  files.add(path, text);
  files.keep();
}

void try_file(const std::string& path) {
  AtomicFileSet files;
  files.add(path, "");
}

}  // namespace shardwise
