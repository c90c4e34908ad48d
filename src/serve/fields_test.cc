#include "serve/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::serve {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

json::object object_of(std::string_view text) {
  return json::parse({text.data(), text.size()}).as_object();
}

TEST(Fields, ReadTheirKindAndNothingElse) {
  const json::object object =
      object_of(R"({"text": "x", "number": 1.5, "whole": 3, "exact": 3.0, "yes": true, "null": null,
                    "list": ["a", "b"], "object": {}, "huge": 1e300})");
  Fields fields(object);
  EXPECT_EQ(**fields.text("text"), "x");
  EXPECT_EQ(**fields.number("number", 0, 2), 1.5);
  EXPECT_EQ(**fields.number("whole", 0, 3), 3);
  EXPECT_EQ(**fields.integer("whole", 0, 3), 3);
  EXPECT_EQ(**fields.integer("exact", 0, 3), 3);
  EXPECT_TRUE(**fields.boolean("yes"));
  EXPECT_THAT(*fields.texts("list", 2), ElementsAre("a", "b"));
  EXPECT_THAT(*fields.texts("text", 2), ElementsAre("x"));
  EXPECT_NE(*fields.object("object"), nullptr);
  EXPECT_NE(*fields.array("list"), nullptr);
  EXPECT_FALSE(fields.text("number").ok());
  EXPECT_FALSE(fields.number("text", 0, 2).ok());
  EXPECT_FALSE(fields.number("yes", 0, 2).ok());
  EXPECT_FALSE(fields.number("number", 0, 1).ok());
  EXPECT_FALSE(fields.integer("number", 0, 2).ok());
  EXPECT_FALSE(fields.integer("whole", 0, 2).ok());
  EXPECT_FALSE(fields.integer("huge", 0, 2).ok());
  EXPECT_FALSE(fields.boolean("whole").ok());
  EXPECT_FALSE(fields.texts("list", 1).ok());
  EXPECT_FALSE(fields.texts("object", 1).ok());
  EXPECT_FALSE(fields.object("list").ok());
  EXPECT_FALSE(fields.array("object").ok());
}

TEST(Fields, TellNumbersOutOfRangeFromFractions) {
  const json::object object =
      json::parse(R"({"far": 1e30, "half": 1.5, "unsigned": 9223372036854775808})").as_object();
  Fields fields(object);
  EXPECT_THAT(fields.integer("unsigned", 0, 9).status().message, HasSubstr("between 0 and 9"));
  EXPECT_THAT(fields.integer("far", 0, 9).status().message, HasSubstr("between 0 and 9"));
  EXPECT_THAT(fields.integer("half", 0, 9).status().message, HasSubstr("whole number"));
}

TEST(Fields, TakeNullAsAbsent) {
  const json::object object = object_of(R"({"null": null})");
  Fields fields(object);
  for (const char* const name : {"null", "absent"}) {
    EXPECT_EQ(fields.value(name), nullptr);
    EXPECT_FALSE(fields.text(name)->has_value());
    EXPECT_FALSE(fields.number(name, 0, 1)->has_value());
    EXPECT_EQ(*fields.object(name), nullptr);
    EXPECT_THAT(*fields.texts(name, 1), IsEmpty());
  }
}

TEST(Fields, NameThePathOfWhatIsWrong) {
  const json::object object = object_of(R"({"top_k": "x"})");
  const Refusal refusal = Fields(object, "options.").integer("top_k", 0, 9).status();
  EXPECT_EQ(refusal.http_status, 400);
  EXPECT_EQ(refusal.field, "options.top_k");
  EXPECT_THAT(refusal.message, HasSubstr("`options.top_k`"));
}

TEST(Fields, WarnOfWhatNobodyAskedFor) {
  const json::object object =
      object_of(R"({"known": 1, "accepted": 1, "\n odd": 1, "other": null})");
  Fields fields(object);
  (void)fields.value("known");
  fields.accept({"accepted"});
  const std::vector<std::string> warnings = fields.warnings();
  ASSERT_THAT(warnings, SizeIs(2));
  EXPECT_THAT(warnings[0], HasSubstr("odd"));
  EXPECT_EQ(warnings[0].find('\n'), std::string::npos);
  EXPECT_THAT(warnings[1], HasSubstr("`other`"));
}

TEST(Fields, LimitTheNumberOfWarnings) {
  json::object object;
  for (int i = 0; i < 1000; ++i) object[std::to_string(i)] = i;
  EXPECT_THAT(Fields(object).warnings(), SizeIs(17));
  static constexpr Shape kNothing{};
  const json::object outer = {{"list", json::array(1000, object)}};
  Fields fields(outer);
  fields.look_into("list", kNothing);
  EXPECT_THAT(fields.warnings(), SizeIs(17));
}

TEST(Fields, AreWordsOfAList) {
  const json::object object = object_of(R"({"good": "high", "bad": "higher", "number": 1})");
  Fields fields(object, "at.");
  EXPECT_EQ(**fields.word("good", {"low", "high"}), "high");
  EXPECT_FALSE(fields.word("absent", {"low"})->has_value());
  EXPECT_EQ(fields.word("bad", {"low", "high"}).status().message,
            "`at.bad` must be one of low, high");
  EXPECT_FALSE(fields.word("number", {"1"}).ok());
}

TEST(Fields, NameWhatIsUnknownInTheObjectsBelow) {
  static constexpr Shape kInner{{{"a"}}};
  static constexpr Shape kOuter{{{"inner", &kInner}, {"free"}}, true};
  const json::object object = object_of(
      R"({"list": [{"inner": {"a": 1, "b": 2}}, 5, {"c": 3, "free": {"d": 4}}],
          "one": {"inner": [{"a": 1}, {"e": {}}]}, "text": "x"})");
  Fields fields(object);
  for (const char* const name : {"list", "one", "text", "absent"}) fields.look_into(name, kOuter);
  EXPECT_THAT(fields.warnings(),
              ElementsAre("`list[0].inner.b` is unknown and was ignored",
                          "`list[2].c` is unknown: only the chat template may know it",
                          "`one.inner[1].e` is unknown and was ignored"));
}

TEST(Fields, SayWhatHasNoEffect) {
  const json::object object = object_of(R"({"a": 1, "b": 2})");
  Fields fields(object, "at.");
  (void)fields.value("a");
  fields.warn("a", "has no effect");
  EXPECT_THAT(fields.warnings(),
              ElementsAre("`at.a` has no effect", "`at.b` is unknown and was ignored"));
}

TEST(Fields, RefuseWhatIsNotSupportedUnlessItAsksForNothing) {
  const json::object object = object_of(
      R"({"a": null, "b": false, "c": 0, "d": "", "e": [], "f": {}, "g": 0.0, "x": [0]})");
  Fields fields(object);
  EXPECT_FALSE(fields.refuse({"a", "b", "c", "d", "e", "f", "g", "absent"}).has_value());
  EXPECT_EQ(fields.refuse({"a", "x"})->field, "x");
}

TEST(Refusals, FollowTheStatus) {
  EXPECT_EQ(Refusal(invalid_argument("x")).http_status, 400);
  EXPECT_EQ(Refusal(not_found("x")).http_status, 404);
  EXPECT_EQ(Refusal(corrupt("x")).http_status, 500);
  EXPECT_TRUE(Refusal(resource_exhausted("x")).is_overload());
  EXPECT_EQ(wrong_field("f", resource_exhausted("x")).http_status, 400);
}

}  // namespace
}  // namespace strata::serve
