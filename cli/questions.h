#pragma once

#include <array>
#include <string>
#include <string_view>

namespace shardwise::cli {

/// A question that people ask, and the verb that answers it.
struct Question {
  std::string_view text;
  std::string_view verb;  // with its flags or files, where these make the question
};

/// Questions that the command answers, those most asked first.
inline constexpr std::array kQuestions = std::to_array<Question>({
    {"Will it fit, in one line?", "fits"},
    {"Does this layout fit, and how fast is it?", "estimate"},
    {"Which layout is best on this cluster?", "plan"},
    {"Why not that one?", "plan --why-not tp=4"},
    {"What would help most?", "plan --levers"},
    {"What must I buy or rent?", "size"},
    {"What runs when, and what waits for what?", "simulate plan.json"},
    {"Where does my profiled run differ?", "simulate plan.json --import"},
    {"Why is this plan slower than that one?", "compare a.json b.json"},
    {"Is my MFU right?", "mfu"},
    {"What do I send to others?", "report plan.json"},
    {"How do I train it with my framework?", "export plan.json"},
    {"What is my configuration as a plan?", "import"},
    {"What in it is refused, or wrong?", "check"},
    {"Can I see it, and try things?", "view plan.json"},
    {"Does it hold on this machine?", "measure"},
    {"How right is it?", "score"},
});

/// The questions as a table, for who types the bare command.
std::string questions_text();

}  // namespace shardwise::cli
