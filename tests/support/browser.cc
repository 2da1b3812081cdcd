#include "tests/support/browser.h"

#include <cstdlib>

namespace shardwise::test {

std::string browser() {
  for (const char* const name : {"chromium", "chromium-browser", "google-chrome"}) {
    const std::string found = std::string("command -v ") + name + " > /dev/null 2>&1";
    if (std::system(found.c_str()) == 0) return name;  // NOLINT(*mt-unsafe*)
  }
  return "";
}

Outcome run_browser(const std::string& profile, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"120",          browser(),       "--headless=new",
                                  "--no-sandbox", "--disable-gpu", "--user-data-dir=" + profile};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program("timeout", all);
}

}  // namespace shardwise::test
