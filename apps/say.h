// Words to the user on standard error.
#pragma once

#include <fmt/format.h>

#include <cstdio>

namespace strata::apps {

// Where standard error cannot be written the words are lost and the work goes on.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace strata::apps
