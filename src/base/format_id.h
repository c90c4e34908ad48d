// Names of the weight formats a GGUF file may hold. The numbers are GGUF's own tensor types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata {

enum class FormatId : std::uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q8_1 = 9,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  Q8_K = 15,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
};

struct FormatInfo {
  FormatId id;
  std::string_view name;
  std::uint32_t block_elements;  // elements of one block along a row
  std::uint32_t block_bytes;
};

// The block geometry of a GGUF tensor type; nullopt for a number GGUF does not define.
std::optional<FormatInfo> format_info(std::uint32_t gguf_type);
std::optional<FormatInfo> format_info(FormatId id);

// "unknown format" for a number GGUF does not define.
std::string_view format_name(FormatId id);

std::optional<FormatId> format_by_name(std::string_view name);

// A tensor type that GGUF does not define, or no longer does, but some program has written.
struct ForeignType {
  std::uint32_t gguf_type;
  std::string_view name;
  std::string_view origin;  // whose it is and what to do, as the end of a sentence
};
std::optional<ForeignType> foreign_type(std::uint32_t gguf_type);

}  // namespace strata
