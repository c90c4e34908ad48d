// Words to the user on standard error, results on standard output.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "base/status.h"

namespace strata::apps {

// Where standard error cannot be written the words are lost and the work goes on.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
}

// Models read text. Vocabularies differ in what they make of other bytes.
inline void note_wrong_utf8(std::string_view where) {
  say("note: {}: not UTF-8; wrong bytes are dropped, replaced or spelled out, as the vocabulary "
      "does it\n",
      where);
}

// At once, so that whoever reads along has it.
inline Status print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return io_error("cannot write to standard output");
  return {};
}

}  // namespace strata::apps
