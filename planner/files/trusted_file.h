#pragma once

#include <sys/types.h>

#include <string>

namespace shardwise {

/// Links on one way that are followed, as many as Linux follows.
inline constexpr int kMostLinks = 40;

/// A program or library of ours that lies beside this one, opened once: what was looked at is what
/// runs, whatever takes its name later.
///
/// It is trusted where the regular file and its folder both belong to root or to the user of this
/// process, and nobody else may write them. A link of one of the two in such a folder is followed:
/// the same is asked of the file it leads to and of that one's folder. No link on the way to the
/// folder may be another user's: it could lead to any file of root's. A sticky folder such as /tmp
/// does not do: others can add files to it. Write permission of the owner's private group does: the
/// group of the owner's name with no other member, to which files of a umask of 002 belong. Not
/// where an access control list is there too, as the group's bits then stand for others.
/// Source: sshd_config(5), StrictModes, and the use of it with private groups in Debian and Fedora.
class TrustedFile {
 public:
  /// \param name  in the folder
  TrustedFile(const std::string& folder, const std::string& name);
  TrustedFile(const TrustedFile&) = delete;
  TrustedFile& operator=(const TrustedFile&) = delete;
  ~TrustedFile();

  /// Whether something has that name that this user can see; then it is trusted, or refusal() says
  /// why not.
  bool exists() const { return file_ >= 0 || !refusal_.empty(); }
  /// One line with what is not trusted, its owner, its mode and the path; empty for a trusted file.
  const std::string& refusal() const { return refusal_; }
  /// The file as the user knows it.
  const std::string& path() const { return path_; }
  /// The open file, for dlopen(3), execve(2) and readers, while this is there.
  /// \pre exists(), and refusal() is empty
  std::string opened() const;

  /// Leaves it open until the process ends: the loader knows a library by the name it was opened
  /// by.
  void keep_open() { kept_ = true; }
  /// Becomes the program. Returns where that fails: errno says why. argv ends with nullptr.
  void run(char* const* argv) const;

 private:
  int open(const std::string& path);
  void check(int file, mode_t type, const char* subject);

  std::string path_;
  std::string refusal_;
  int file_ = -1;
  bool kept_ = false;
};

/// A user for people: "ada (1000)", "user 1000" where he has no name.
std::string user_name(uid_t user);

/// Whether a program may keep a file for its user below his home, such as how a window was left.
/// Neither the home nor any part of the way that is there may belong to another user but root, or
/// be open to the writing of others, who could have made it: as where root has the HOME of a user.
/// A sticky folder may be open to others. Nothing below the home may be a link; a home is one at
/// most of root's. \param home    an absolute path \param within  from there to the file
bool may_keep(const std::string& home, const std::string& within);

}  // namespace shardwise
