#include "sample/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <type_traits>

namespace strata {
namespace {

TEST(SamplingParams, OutOfRangeAreNamed) {
  const auto refusal = [](auto set) {
    SamplingParams params;
    set(params);
    return params.validate(100).message();
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  const auto nan = std::nanf("");
  EXPECT_NE(refusal([&](auto& p) { p.temperature = nan; }).find("temperature"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.temperature = -1; }).find("temperature"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.top_k = -2; }).find("top_k"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.top_p = 1.5f; }).find("top_p"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.min_p = -0.5f; }).find("min_p"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.repeat_penalty = 0; }).find("repeat_penalty"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.repeat_last_n = -2; }).find("repeat_last_n"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.mirostat = 1; }).find("mirostat"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) {
              p.temperature = 0;
              p.order = {SamplingStage::kTopK};
            }).find("temperature"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) {
              p.dry_breakers = {{.token = 5}, {.token = 100}};
            }).find("token 100"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) {
              p.dry_breakers = {{.token = 5}, {.token = 4}};
            }).find("ascending"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) {
              p.logit_bias = {{100, 1.0f}};
            }).find("token 100"),
            std::string::npos);
  EXPECT_NE(refusal([&](auto& p) {
              p.logit_bias = {{1, nan}};
            }).find("token 1"),
            std::string::npos);
}

TEST(SamplingParams, SayWhichFieldIsWrong) {
  const auto wrong = [](auto set) {
    SamplingParams params;
    set(params);
    std::string_view field;
    EXPECT_FALSE(params.validate(100, &field).ok());
    return field;
  };
  EXPECT_EQ(wrong([](auto& p) { p.top_p = 2; }), "top_p");
  EXPECT_EQ(wrong([](auto& p) { p.mirostat = 1; }), "mirostat");
  EXPECT_EQ(wrong([](auto& p) { p.temperature = 0, p.order.clear(); }), "temperature");
  EXPECT_EQ(wrong([](auto& p) { p.logit_bias = {{100, 1.0f}}; }), "logit_bias");
  EXPECT_EQ(wrong([](auto& p) { p.dry_breakers = {{.token = 100}}; }), "dry_breakers");
}

TEST(SamplingFields, RefuseNumbersOutsideTheirRange) {
  for (const SamplingField& field : sampling_fields()) {
    if (field.name == "seed") continue;
    for (const double value : {field.low, field.high, field.low - 1, field.high * 2}) {
      if (value > 1e9) continue;  // beyond what the member holds
      SamplingParams params;
      std::visit(
          [&](auto member) {
            params.*member = static_cast<std::remove_reference_t<decltype(params.*member)>>(value);
          },
          field.member);
      const bool fits = value >= field.low && value <= field.high;
      EXPECT_EQ(params.validate(100).ok(), fits) << field.name << ' ' << value;
    }
  }
}

}  // namespace
}  // namespace strata
