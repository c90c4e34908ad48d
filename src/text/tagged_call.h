// What calls of ToolStyle::kFunctionTags are written of.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata {

inline constexpr std::string_view kParameterTag = "<parameter=", kEndParameter = "</parameter>";
inline constexpr std::string_view kEndFunction = "</function>";
// What ends a value: with the line break that a template puts before it, or without.
inline constexpr std::string_view kEndParameterLine = "\n</parameter>";
inline constexpr std::size_t kMostLabelBytes = 256;

// Whether an argument can have this name, or a value this text.
bool is_tagged_key(std::string_view key);
bool is_tagged_text(std::string_view text);
// A value that is written so, as JSON, where it may be of `kinds` (JsonKinds): of the kind that it
// reads as, if that is among them, else a string.
std::string tagged_value(const std::string& text, unsigned kinds);

}  // namespace strata
