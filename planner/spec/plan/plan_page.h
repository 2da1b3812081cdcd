#pragma once

#include <string>
#include <string_view>

#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A page larger than this is no report of ours: `shardwise report` writes at most 1 MB.
inline constexpr std::size_t kMostPageBytes = 16'000'000;

/// JSON as an element of an HTML page that a browser neither shows nor runs. Names cannot end it:
/// each `<` is written as a JSON escape.
/// \param id  of the element, our own
std::string json_element(std::string_view id, std::string_view json);

/// The plan as such an element.
std::string plan_element(const Plan& plan);

/// The plan's digest as an element that a page shows, by which its reader names the plan.
std::string plan_digest_element(const Plan& plan);

/// The element in which a page shows its own digest, before with_page_digest() writes it.
inline constexpr std::string_view kPageDigestElement = "<code id=\"page-sha256\"></code>";

/// The page with its own digest: the SHA-256 of its bytes but for the text of kPageDigestElement,
/// with line ends of one byte. It ties all that the page shows to the plan that programs read from
/// it. It is no signature: who changes the page can change it too. A page without such an element
/// is left as it is.
std::string with_page_digest(std::string page);

/// Whether a file's text is a page rather than JSON.
bool is_page(std::string_view text);

/// The JSON text of the one plan in a page, below as many empty lines as stand before it, so that
/// problems have the page's lines. The plan is an element as a browser finds it (page_elements.h).
/// Refuses pages without a plan, with two, cut-off ones, and those that show no digest of the plan
/// and of the page, or another one: they were changed since they were written.
/// \param file  the name put into diagnostics
Result<std::string> plan_in_page(std::string_view page, const std::string& file);

}  // namespace shardwise
