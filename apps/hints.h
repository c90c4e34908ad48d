// What to tell a user whose command line is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::apps {

// The one of `known` that takes the fewest letters to be changed, added or left out, or swapped
// with the next. REQUIRES: known is not empty.
std::string_view closest(std::string_view word, std::span<const std::string> known);

// `words`: the command line without the program. Where the first is no command: the sentence that
// names it and the closest one; else empty.
std::string unknown_command(const CLI::App& app, std::span<const std::string> words);

// Where the command refuses an option that llama.cpp's programs have: Strata's own way; else empty.
std::string hint_for(const CLI::App& app, std::span<const std::string> words);

}  // namespace strata::apps
