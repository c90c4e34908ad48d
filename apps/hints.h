// What to tell a user whose command line is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::apps {

// The one of `known` that takes the fewest letters to be changed, added or left out, or swapped
// with the next; empty where that is more than two, or as many as `word` has.
std::string_view closest(std::string_view word, std::span<const std::string> known);

// `words`: the command line without the program. Where the first is no command: the sentence that
// names it and what may have been meant; else empty.
std::string unknown_command(const CLI::App& app, std::span<const std::string> words);

// Where there is an option that llama.cpp's programs have and the command does not: Strata's own
// way; else empty. `gives_help`: CLI11 found -h, for which it takes the beginning of -hf, too.
std::string hint_for(const CLI::App& app, std::span<const std::string> words, bool gives_help);

}  // namespace strata::apps
