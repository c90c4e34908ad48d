#include "text/messages.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace strata {
namespace {

namespace json = boost::json;

std::string normal(std::string_view text) {
  const auto made = read_messages(json::parse(text));
  if (made.ok()) return json::serialize(*made);
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  return made.status().message();
}

TEST(Messages, ContentIsAStringOrTextParts) {
  EXPECT_EQ(normal(R"([{"role":"user","content":"hi"}])"), R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(normal(R"([{"role":"user","content":["a",{"type":"input_text","text":"b"},
                      {"text":"c","cache_control":{}}]}])"),
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},)"
            R"({"type":"text","text":"c"}]}])");
}

TEST(Messages, ImagesAndSoundAreRefused) {
  EXPECT_EQ(normal(R"([{"role":"user","content":"x"},{"role":"user","content":[
                      {"type":"text","text":"a"},{"type":"image_url","image_url":{}}]}])"),
            "messages[1]: content[1]: parts of type \"image_url\" are not supported: Strata reads "
            "text only, no images, sound or files");
  EXPECT_EQ(normal(R"([{"role":"user","content":"x","images":["aGk="]}])"),
            "messages[0]: \"images\" are not supported: Strata reads text only");
  EXPECT_EQ(normal(R"([{"role":"user","content":"x","images":[]}])"),
            R"([{"role":"user","content":"x"}])");
}

TEST(Messages, OfAnotherFormAreRefusedWithTheirPlace) {
  EXPECT_EQ(normal("[]"), "\"messages\" must be a list of at least one message");
  EXPECT_EQ(normal("{}"), "\"messages\" must be a list of at least one message");
  EXPECT_EQ(normal("[1]"), "messages[0]: must be an object");
  EXPECT_EQ(normal("[{}]"), "messages[0]: \"role\" is missing");
  EXPECT_EQ(normal(R"([{"role":1}])"), "messages[0]: \"role\" must be a string");
  EXPECT_EQ(normal(R"([{"role":"endoftext","content":""}])"),
            "messages[0]: \"role\" must be system, developer, user, assistant or tool, not "
            "\"endoftext\"");
  EXPECT_EQ(normal(R"([{"role":"user"}])"), "messages[0]: \"content\" is missing");
  EXPECT_EQ(normal(R"([{"role":"user","content":7}])"),
            "messages[0]: \"content\" must be a string or a list of parts");
  EXPECT_EQ(normal(R"([{"role":"user","content":[7]}])"),
            "messages[0]: content[0]: must be an object with a \"type\"");
  EXPECT_EQ(normal(R"([{"role":"user","content":[{"type":"text"}]}])"),
            "messages[0]: content[0]: \"text\" is missing");
  EXPECT_EQ(normal(R"([{"role":"assistant","tool_calls":{}}])"),
            "messages[0]: \"tool_calls\" must be a list of calls");
  EXPECT_EQ(normal(R"([{"role":"assistant","tool_calls":[{"id":"x"}]}])"),
            "messages[0]: tool_calls[0]: must be an object with a \"function\"");
  EXPECT_EQ(normal(R"([{"role":"assistant","tool_calls":[{"function":{}}]}])"),
            "messages[0]: tool_calls[0]: \"function.name\" is missing");
  EXPECT_EQ(normal(R"([{"role":"tool","content":"x","tool_call_id":7}])"),
            "messages[0]: \"tool_call_id\" must be a string");
}

TEST(Messages, ArgumentsAreAnObjectOrAStringThatHoldsOne) {
  const std::string_view form =
      R"([{{"role":"assistant","content":null,"tool_calls":[{{"id":"i","type":"function",)"
      R"("function":{{"name":"f","arguments":{}}}}}]}}])";
  const auto with = [&](std::string_view arguments) {
    return normal(fmt::format(fmt::runtime(form), arguments));
  };
  const auto expected = [&](std::string_view arguments) {
    return fmt::format(R"([{{"role":"assistant","content":"","tool_calls":[{{"id":"i",)"
                       R"("type":"function","function":{{"name":"f","arguments":{}}}}}]}}])",
                       arguments);
  };
  EXPECT_EQ(with(R"({"a":1})"), expected(R"({"a":1})"));
  EXPECT_EQ(with(R"("{\"a\": 1}")"), expected(R"({"a":1})"));
  EXPECT_EQ(with(R"("")"), expected("{}"));
  EXPECT_EQ(with("null"), expected("{}"));
  EXPECT_EQ(with(R"("{\"a\": \"\\ud800\"}")"), expected("{\"a\":\"\uFFFD\"}"));
  for (const char* wrong : {"[1]", "7", R"("[1]")", R"("{\"a\": ")"})
    EXPECT_EQ(
        with(wrong),
        "messages[0]: tool_calls[0]: \"function.arguments\" must be a JSON object or a string "
        "that holds one");
}

// Whatever a model may write, as the parser of its calls takes it.
TEST(Messages, TakeTheArgumentsOfAnyCall) {
  for (const std::size_t depth : {1u, 33u, 120u}) {
    std::string arguments;
    for (std::size_t i = 0; i < depth; ++i) arguments += R"({\"a\":)";
    arguments += "1" + std::string(depth, '}');
    const std::string read =
        normal(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":")" +
               arguments + R"("}}]}])");
    EXPECT_NE(read.find("1" + std::string(depth, '}')), std::string::npos) << depth << read;
  }
}

TEST(Messages, ResultsFindTheCallsThatTheyAnswer) {
  const std::string calls =
      R"({"role":"assistant","content":"","tool_calls":[)"
      R"({"function":{"name":"f","arguments":{}},"type":"function","id":"call00001"},)"
      R"({"function":{"name":"g","arguments":{}},"type":"function","id":"call00002"}]})";
  const std::string given = R"({"role":"assistant","tool_calls":[)"
                            R"({"function":{"name":"f"}},{"function":{"name":"g"}}]})";
  const auto results = [&](std::string_view text) {
    const json::array read_back =
        json::parse(normal("[" + given + "," + std::string(text) + "]")).as_array();
    std::string out;
    for (std::size_t i = 1; i < read_back.size(); ++i) {
      const json::object& message = read_back[i].as_object();
      for (const char* key : {"tool_call_id", "name"})
        out += message.contains(key) ? std::string(message.at(key).as_string()) + " " : "- ";
    }
    return out;
  };
  EXPECT_TRUE(normal("[" + given + "]").find(R"("id":"call00002")") != std::string::npos);
  // By order, by the name that Ollama's clients give, by the id of OpenAI's.
  EXPECT_EQ(results(R"({"role":"tool","content":"1"},{"role":"tool","content":"2"})"),
            "call00001 f call00002 g ");
  EXPECT_EQ(results(R"({"role":"tool","content":"1","tool_name":"g"})"), "call00002 g ");
  EXPECT_EQ(results(R"({"role":"tool","content":"1","tool_call_id":"call00002"})"), "call00002 g ");
  EXPECT_EQ(results(R"({"role":"tool","content":"1","tool_call_id":"other"})"), "other - ");
}

TEST(Messages, ThoughtsHaveOneName) {
  EXPECT_EQ(normal(R"([{"role":"assistant","content":"a","thinking":"t"}])"),
            R"([{"role":"assistant","content":"a","reasoning_content":"t"}])");
  EXPECT_EQ(normal(R"([{"role":"assistant","content":"a","reasoning":1}])"),
            "messages[0]: \"reasoning\" must be a string");
}

}  // namespace
}  // namespace strata
