#pragma once

#include <string>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Where the path of an output leads.
struct OutputPlace {
  enum class Kind {
    regular,     // a regular file, or a name that is free
    folder,      // no place for a file
    stream,      // a named pipe or a device, written as it is
    descriptor,  // open already: standard output, or what the shell opened
  };
  Kind kind = Kind::regular;
  std::string path;     // with links followed to the end; a link to nothing leads to that name
  int descriptor = -1;  // of that kind
  bool exists = false;
  /// Who else put the file, the pipe or a link of the way into a sticky folder that anybody may
  /// write, such as /tmp: "nobody (65534)". Written, it would be where he wants, or his to alter.
  /// Empty: nobody, or the folder's owner. Source: proc_sys_fs(5), protected_symlinks,
  /// protected_regular and protected_fifos, which may be off.
  std::string planted_by;

  /// Reason not to write it; empty where there is none.
  std::string refusal() const;
};

/// "-" and /dev/stdout are standard output, /dev/fd/N is an open descriptor. \throws IoError  for
/// links in a circle, with the path and the reason
OutputPlace find_output(const std::string& path);

/// A file and the flag, or the argument, that names it.
struct NamedFile {
  std::string flag;
  std::string path;  // empty: not given
};

/// Problems of a command's outputs: one that is an input, also by another name or through links,
/// and two that are one file. Standard output counts as an output where it is a regular file or
/// where an output is "-". Character devices such as /dev/null are nobody's.
Diagnostics check_outputs(const std::vector<NamedFile>& outputs,
                          const std::vector<NamedFile>& inputs);

/// Whether an output is a folder, or would be in it: by any name, through links, and where the
/// folder or those between are not there yet.
bool is_inside(const std::string& path, const std::string& folder);

/// Leaves standard output to the file whose path is "-" when one of the outputs is that: from now
/// on what the program prints goes to standard error.
void reserve_standard_output(const std::vector<NamedFile>& outputs);

/// The descriptor of standard output for a file whose path is "-".
int standard_output();

}  // namespace shardwise
