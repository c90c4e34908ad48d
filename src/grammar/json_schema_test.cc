#include "grammar/json_schema.h"

#include <boost/json.hpp>

#include "grammar/test_support.h"

namespace strata {
namespace {

using namespace testing;

Grammar schema(std::string_view text) {
  return compiled(json_schema_grammar(boost::json::parse({text.data(), text.size()})));
}

void expect_refusal(std::string_view text, std::string_view part) {
  const auto grammar = json_schema_grammar(boost::json::parse({text.data(), text.size()}));
  ASSERT_FALSE(grammar.ok()) << text;
  const std::string message = grammar.status().message();
  EXPECT_NE(message.find(part), message.npos) << message;
}

void expect_texts(std::string_view schema_text, const std::vector<std::string>& accepted,
                  const std::vector<std::string>& refused) {
  const Grammar grammar = schema(schema_text);
  for (const std::string& text : accepted) EXPECT_TRUE(accepts(grammar, text)) << text;
  for (const std::string& text : refused) EXPECT_FALSE(accepts(grammar, text)) << text;
}

TEST(JsonSchema, MembersComeInOrderAndOptionalOnesMayBeMissing) {
  expect_texts(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},
                   "c":{"type":"null"}},"required":["b"]})",
               {R"({"a": 1, "b": "x", "c": null})", R"({"b":""})", R"({"a":1,"b":""})",
                R"({"b":"","c":null})", "{\n  \"b\": \"\"\n}"},
               {"{}", R"({"a":1})", R"({"b":"","a":1})", R"({"a":1,"a":2,"b":""})", R"({"b":"",})",
                R"({"b":"","d":1})", R"({"b":1})", R"({,"b":""})"});
  expect_texts(R"({"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}})",
               {"{}", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
               {R"({"a":1,})", R"({"b":2,"a":1})", "[]"});
}

TEST(JsonSchema, AdditionalMembersHaveOtherNames) {
  const char* const text = R"({"properties":{"a":{"type":"integer"},"ab":{"type":"integer"}},
                               "additionalProperties":{"type":"string"}})";
  expect_texts(text,
               {"{}", R"({"b":"x"})", R"({"a":1,"ab":2,"abc":"x"})", R"({"":"x","b":"y"})",
                R"({"é":"x"})", R"({"a":1,"aé\n":"x"})"},
               {R"({"a":"x"})", R"({"ab":"x"})", R"({"b":1})", R"({"\u0061":"x"})",
                R"({"a\u0062":"x"})", R"({"b":"x","a":1})"});
  expect_texts(R"({"type":"object","required":["x"]})", {R"({"x":[1]})", R"({"x":1,"y":2})"},
               {"{}", R"({"y":2})"});
}

TEST(JsonSchema, ArraysKeepTheirNumbers) {
  expect_texts(R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
               {"[1,2]", "[1, 2, 3]", "[\n  1,\n  2\n]"}, {"[]", "[1]", "[1,2,3,4]", "[1,]"});
  expect_texts(R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
               {"[]", "[1]", "[1,\"a\"]"}, {"[\"a\"]", "[1,\"a\",2]"});
  expect_texts(R"({"items":[{"type":"integer"}],"additionalItems":{"type":"null"},"minItems":2})",
               {"[1,null]", "[1,null,null]"}, {"[]", "[1]", "[1,2]"});
  expect_texts(R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"});
  expect_texts(R"({"prefixItems":[{"type":"integer"},{"type":"integer"}],"maxItems":1})",
               {"[]", "[1]"}, {"[1,2]"});
}

TEST(JsonSchema, IntegersKeepTheirBoundsExactly) {
  struct Case {
    std::int64_t min, max;
  };
  for (const auto& [min, max] : {Case{0, 9}, {-5, 5}, {-120, -7}, {99, 1001}, {1, 1}, {-1, 0}}) {
    const Grammar grammar = schema(
        fmt::format(R"({{"type":"integer","minimum":{},"exclusiveMaximum":{}}})", min, max + 1));
    for (std::int64_t i = -1200; i <= 1200; ++i)
      EXPECT_EQ(accepts(grammar, std::to_string(i)), min <= i && i <= max) << i;
    EXPECT_FALSE(accepts(grammar, "01"));
    EXPECT_FALSE(accepts(grammar, "1.0"));
  }
  expect_texts(R"({"type":"integer","minimum":9007199254740993})",
               {"9007199254740993", "9007199254740994", "1234567890123456789"},
               {"9007199254740992", "1", "-9007199254740993"});
  expect_texts(R"({"type":"integer","minimum":1.5,"maximum":3.0})", {"2", "3"}, {"1", "4"});
}

TEST(JsonSchema, NumbersKeepTheirBoundsExactly) {
  expect_texts(R"({"type":"number","minimum":0,"maximum":1})", {"0", "1", "0.5", "0.999", "1.000"},
               {"1.0001", "-0.1", "2", "1e5"});
  expect_texts(R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
               {"0.1", "0.00001", "0.99"}, {"0", "0.0", "1", "1.0"});
  expect_texts(R"({"type":"number","minimum":-2.5,"exclusiveMaximum":-0.25})",
               {"-2.5", "-2.50", "-1", "-0.26", "-0.251"}, {"-2.51", "-0.25", "0", "1"});
  expect_texts(R"({"type":"number"})", {"0", "-1.5e-7", "3E+8", "12.75"},
               {"01", "1.", ".5", "+1", "1e", "NaN", "1e999"});
}

TEST(JsonSchema, StringsAreOfCharactersAndEscapes) {
  expect_texts(R"({"type":"string","minLength":2,"maxLength":3})",
               {R"("ab")", R"("é漢😀")", R"("\n\u00e9")", R"("\ud83d\ude00x")"},
               {R"("a")", R"("abcd")", R"("\ud83d\ude00")", "\"a\nb\"", R"("\x61b")"});
  expect_texts(R"({"type":"string"})", {R"("")", R"("\"\\\/")", R"("\uFFFF")"},
               {R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", "\"\xff\"", "\"\t\""});
}

TEST(JsonSchema, LargeLimitsOfLengthCostNothing) {
  for (const char* text :
       {R"({"type":"object","properties":{"a":{"type":"object","properties":{
            "b":{"type":"string","minLength":1,"maxLength":2000}}}}})",
        R"({"type":"string","maxLength":100000})", R"({"type":"string","maxLength":1e300})",
        R"({"type":"array","items":{"type":"string","maxLength":100000},"maxItems":100000})"}) {
    const Grammar grammar = schema(text);
    EXPECT_LT(grammar->states.size(), 2000u) << text;
  }
  const Grammar grammar = schema(R"({"type":"string","minLength":5,"maxLength":100000})");
  EXPECT_TRUE(accepts(grammar, "\"" + std::string(100'000, 'x') + "\""));
  EXPECT_FALSE(begins(grammar, "\"" + std::string(100'001, 'x')));
  EXPECT_FALSE(accepts(grammar, "\"xxxx\""));
}

TEST(JsonSchema, AnEmptySchemaIsAnyValue) {
  expect_texts("{}", {"{}", "[1,{\"a\":null}]", "\"x\"", "1", "true", "null"}, {"", "x"});
  expect_texts(R"({"type":"object"})", {"{}", R"({"a":{"b":[]}})"}, {"[]"});
  expect_texts(R"({"type":"object","properties":{}})", {"{}", R"({"a":1})"}, {"[]"});
  expect_texts(R"({"type":"object","properties":{},"additionalProperties":false})", {"{}"},
               {R"({"a":1})"});
}

TEST(JsonSchema, PatternsOfManyToolsAreRead) {
  std::string tools = R"({"type":"object","properties":{)";
  for (int i = 0; i < 50; ++i)
    tools += fmt::format("{}\"tool{}\":{}", i == 0 ? "" : ",", i,
                         R"({"type":"array","items":{"type":"string",
                             "pattern":"^(\\d+|imap:[A-Za-z0-9_-]+)$"},"minItems":1,
                             "maxItems":100})");
  const Grammar grammar = schema(tools + "}}");
  EXPECT_TRUE(accepts(grammar, R"({"tool7":["12","imap:a_B-9"]})"));
  EXPECT_FALSE(begins(grammar, R"({"tool7":["12x)"));
}

TEST(JsonSchema, PatternsAreRegularExpressions) {
  const auto pattern = [](std::string_view regex) {
    return boost::json::serialize(
        boost::json::object{{"type", "string"}, {"pattern", std::string(regex)}});
  };
  expect_texts(pattern("^a.c$"), {"\"abc\"", "\"a\\\"c\"", "\"aéc\""}, {"\"ac\"", "\"a\\nc\""});
  expect_texts(pattern("b"), {"\"b\"", "\"abc\"", "\"\\nb\""}, {"\"\"", "\"ac\""});
  expect_texts(pattern("^a|b$"), {"\"ax\"", "\"xb\""}, {"\"xax\"", "\"bx\""});
  expect_texts(pattern("^(?:x|(?<n>y){2,3}?)+$"), {"\"x\"", "\"yyx\"", "\"yyyyy\""}, {"\"y\""});
  expect_texts(pattern("^[^a-c\\d\\]-]\\.\\x41\\u00e9\\/$"), {"\"x.Aé/\"", "\"\\\\.Aé/\""},
               {"\"a.Aé/\"", "\"].Aé/\"", "\"xxAé/\""});
  expect_texts(pattern("^\\s\\S\\w\\W{2}$"), {"\" -a--\"", "\"\\t_9é\\u0000\""}, {"\"  a--\""});
  expect_texts(pattern("^{a}{2}$"), {"\"{a}}\""}, {"\"{a}\""});
  expect_texts(pattern("^\\t\\u0001$"), {"\"\\t\\u0001\""}, {"\"\\t\x01\""});
}

TEST(JsonSchema, WhatIsNoRegularExpressionIsRefusedWithItsPlace) {
  const auto refused = [](std::string_view regex, std::string_view part) {
    const boost::json::object inner = {{"type", "string"}, {"pattern", std::string(regex)}};
    expect_refusal(boost::json::serialize(
                       boost::json::object{{"properties", boost::json::object{{"p", inner}}}}),
                   part);
  };
  for (const char* regex :
       {"(?<=x)y", "(?<!x)y", "x(?=y)", "(?!x)", "\\bx",    "(a)\\1",       "\\p{L}",
        "a^b",     "a$b",     "(^a)",   "a**",   "a{3,2}",  "[b-a]",        "[a",
        "(a",      "a)",      "*",      "\\",    "\\ud800", "a{1000000000}"})
    refused(regex, "#/properties/p/pattern");
  refused("^[\\w.]+@((?=x)|y)$", "not supported");
  for (const std::size_t depth : {100u, 5000u})
    refused(std::string(depth, '(') + std::string(depth, ')'), "nests deeper");
  refused(std::string(50'000, 'a'), "characters");
}

TEST(JsonSchema, FormatsAreKept) {
  const auto format = [](std::string_view name) {
    return fmt::format(R"({{"type":"string","format":"{}"}})", name);
  };
  expect_texts(format("date"), {"\"2024-02-29\"", "\"2023-12-31\"", "\"2000-02-29\""},
               {"\"2023-02-29\"", "\"2023-13-01\"", "\"1900-02-29\"", "\"2023-04-31\""});
  expect_texts(format("time"), {"\"23:59:59Z\"", "\"00:00:00.5+01:30\""}, {"\"24:00:00Z\""});
  expect_texts(format("date-time"), {"\"2024-01-02T03:04:05Z\""}, {"\"2024-01-02 03:04:05Z\""});
  expect_texts(format("uuid"), {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123e4567\""});
  expect_texts(format("email"), {"\"a.b+c@example.org\""}, {"\"a@b\"", "\"a..b@c.de\""});
  expect_texts(format("ipv4"), {"\"192.168.0.255\""}, {"\"256.1.1.1\"", "\"1.1.1\""});
  expect_texts(format("uri"), {"\"https://a.b/c?d=e#f%20\""}, {"\"a b\"", "\"//a\""});
  expect_texts(format("hostname"), {"\"a-b.example\""}, {"\"-a\""});
  expect_texts(format("duration"), {"\"P1DT2H\"", "\"PT5M\"", "\"P2W\""}, {"\"P\"", "\"PT\""});
  expect_refusal(format("iri-reference"), "#/format");
}

TEST(JsonSchema, ConstantsAndEnumsAreWrittenAsJson) {
  expect_texts(R"({"enum":["a\"b\u0001",1,-2.5,null,[1,{"x":true}]]})",
               {R"("a\"b\u0001")", "1", "-2.5", "null", R"([1, {"x": true}])", R"([1,{"x":true}])"},
               {"2", "\"a\"", "[]"});
  expect_texts(R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"});
  expect_texts(R"({"const":"x","enum":["x","y"]})", {"\"x\""}, {"\"y\""});
  expect_refusal(R"({"enum":[]})", "the schema, #/enum: the list is empty");
  expect_refusal(R"({"type":"string","enum":[1]})", "#/enum: no value of the list");
  expect_refusal(R"({"type":"string","const":1})", "#/const: the value");
  expect_refusal(R"({"properties":{"a":{"items":{"enum":[]},"minItems":1}},"required":["a"]})",
                 "the schema, #/properties/a/items/enum: the list is empty");
  expect_refusal(R"({"enum":"a"})", "#/enum");
}

TEST(JsonSchema, ReferencesMayRecur) {
  expect_texts(R"({"type":"object","properties":{"child":{"$ref":"#"},"n":{"$ref":"#/$defs/a~1b"}},
                   "$defs":{"a/b":{"type":"integer"}}})",
               {"{}", R"({"child":{"child":{},"n":3}})", R"({"n":1})"}, {R"({"child":1})"});
  expect_refusal(R"({"$ref":"#"})", "left recursion");
  expect_refusal(R"({"anyOf":[{"$ref":"#/anyOf/1"},{"$ref":"#/anyOf/0"}]})", "left recursion");
  expect_refusal(R"({"allOf":[{"$ref":"#"}]})", "deeper");
  expect_refusal(R"({"properties":{"a":{"$ref":"#/x"}}})", "#/properties/a/$ref");
  expect_refusal(R"({"$ref":"https://example.org/s.json"})", "#/$ref");
  expect_refusal(R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})", "never comes to an end");
}

TEST(JsonSchema, PartsOfAllOfAreOneSchema) {
  expect_texts(R"({"allOf":[{"$ref":"#/$defs/a"},{"properties":{"y":{"type":"integer"}},
                   "required":["y"]}],"$defs":{"a":{"type":"object",
                   "properties":{"x":{"type":"integer"}},"required":["x"]}}})",
               {R"({"x":1,"y":2})"}, {R"({"x":1})", R"({"y":2})"});
  expect_texts(R"({"allOf":[{"type":"integer","minimum":3},{"type":["number","null"],"minimum":5},
                   {"maximum":7}]})",
               {"5", "7"}, {"4", "8", "null", "5.5"});
  expect_texts(R"({"$ref":"#/$defs/s","description":"text","maxLength":2,
                   "$defs":{"s":{"type":"string","maxLength":9}}})",
               {"\"ab\""}, {"\"abc\""});
  expect_texts(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"}},
                   "anyOf":[{"required":["a"]},{"required":["b"]}]})",
               {R"({"a":1})", R"({"b":null})", R"({"a":1,"b":null})"}, {"{}"});
  expect_refusal(R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "#/pattern: pattern together");
  expect_refusal(R"({"allOf":[{"properties":{"x":{}},"additionalProperties":false},
                     {"properties":{"y":{}}}]})",
                 "additionalProperties");
}

TEST(JsonSchema, WhatIsNoSchemaIsRefusedWithItsPlace) {
  expect_refusal(R"({"type":"object","properties":{"foo":"bar"}})", "#/properties/foo");
  expect_refusal(R"({"type":"object","properties":["foo"]})", "#/properties");
  expect_refusal(R"({"properties":{"a/b":{"items":{"type":"strin"}}}})",
                 "#/properties/a~1b/items/type");
  expect_refusal(R"({"type":[]})", "#/type");
  expect_refusal(R"({"type":"string","minLength":-1})", "#/minLength");
  expect_refusal(R"({"type":"string","minLength":"1"})", "#/minLength");
  expect_refusal(R"({"type":"string","minLength":3,"maxLength":2})", "minLength");
  expect_refusal(R"({"type":"integer","minimum":3,"maximum":2})", "no integer");
  expect_refusal(R"({"type":"number","minimum":3,"exclusiveMaximum":3})", "no number");
  expect_refusal(R"({"type":"number","minimum":"3"})", "#/minimum");
  expect_refusal(R"({"required":"a"})", "#/required");
  expect_refusal(R"({"properties":{"a":{}},"required":["b"],"additionalProperties":false})",
                 "\"b\"");
  expect_refusal(R"({"anyOf":[]})", "#/anyOf");
  expect_refusal("5", "a schema must be");
  expect_refusal("false", "the schema, #: false allows no value");
}

TEST(JsonSchema, KeywordsThatConstrainAreNeverIgnored) {
  for (const char* keyword :
       {R"("not":{})", R"("if":{})", R"("multipleOf":3)", R"("contains":{})",
        R"("patternProperties":{"a":{},"b":{}})", R"("dependentRequired":{})",
        R"("uniqueItems":true)", R"("unevaluatedProperties":false,"additionalProperties":true)"})
    expect_refusal(fmt::format(R"({{"properties":{{"a":{{{}}}}}}})", keyword), "#/properties/a/");
  expect_refusal(R"({"type":"string","pattern":"^a*b*$","maxLength":5})", "changing length");
  expect_texts(R"({"title":"t","description":"d","default":1,"examples":[2],"$schema":"s",
                   "x-order":3,"deprecated":true,"type":"integer","uniqueItems":true})",
               {"3"}, {"\"a\""});
}

TEST(JsonSchema, WhiteSpaceIsBounded) {
  const Grammar grammar = compiled(json_object_grammar());
  for (const char* text : {"{ }", "\n\n{}", "{\n\t\"a\": [\n\t\t1,\n\t\t2\n\t]\n}", "{\"a\": 1 }"})
    EXPECT_TRUE(accepts(grammar, text)) << text;
  for (const char* text : {"\n\n\n", "{  ", "{\n\n", "{\"a\" ", "{\"a\":  ", "{\"a\":\n", "{} "})
    EXPECT_FALSE(begins(grammar, text)) << text;
  EXPECT_FALSE(begins(grammar, "{\n" + std::string(49, ' ')));
}

TEST(JsonSchema, HostileSchemasHaveLimits) {
  boost::json::value deep = boost::json::object();
  for (int i = 0; i < 100; ++i) deep = boost::json::object{{"items", deep}};
  EXPECT_FALSE(json_schema_grammar(deep).ok());
  boost::json::object many;
  for (int i = 0; i < 30'000; ++i) many[std::to_string(i)] = boost::json::object();
  EXPECT_FALSE(json_schema_grammar(boost::json::object{{"properties", many}}).ok());
  boost::json::object branch = {{"type", "object"}};
  boost::json::array ways;
  for (int i = 0; i < 2000; ++i) branch[std::to_string(i)] = i;
  for (int i = 0; i < 200; ++i) ways.push_back(branch);
  EXPECT_FALSE(json_schema_grammar(boost::json::object{{"anyOf", ways}, {"type", "object"}}).ok());
}

TEST(JsonSchema, ManyOptionalMembersAreFollowed) {
  boost::json::object properties;
  for (int i = 0; i < 500; ++i)
    properties["member" + std::to_string(i)] = boost::json::object{{"type", "integer"}};
  const Grammar grammar =
      compiled(json_schema_grammar(boost::json::object{{"properties", properties}}));
  EXPECT_TRUE(accepts(grammar, R"({"member3":1,"member250":2,"member499":3})"));
  EXPECT_FALSE(begins(grammar, R"({"member3":1,"member2")"));
}

TEST(JsonSchema, SchemasBecomePartsOfAGrammar) {
  GrammarBuilder builder;
  JsonText json(builder);
  const boost::json::value parameters =
      boost::json::parse(R"({"properties":{"a":{"type":"null"}}})");
  const auto argument = add_json_schema(json, parameters, "tools[0]");
  ASSERT_TRUE(argument.ok());
  const auto root = builder.add_rule("call");
  builder.define(root,
                 builder.sequence({builder.literal("<call>"), *argument, builder.literal("<arg>"),
                                   builder.text_through("</arg>")}));
  const Grammar grammar = compiled(builder.compile(root));
  EXPECT_TRUE(accepts(grammar, "<call>{\"a\":null}<arg>any < </ar text</</arg>"));
  EXPECT_FALSE(begins(grammar, "<call>{}<arg></arg>x"));
  const auto wrong = add_json_schema(json, boost::json::parse(R"({"type":1})"), "tools[1]");
  EXPECT_NE(wrong.status().message().find("tools[1], #/type"), std::string::npos);
}

Result<Grammar> objects_grammar(std::string_view schema) {
  GrammarBuilder builder;
  JsonText json(builder);
  const boost::json::value parameters = boost::json::parse({schema.data(), schema.size()});
  SchemaWork work;
  STRATA_ASSIGN(const auto objects, add_json_objects(json, parameters, "f", work));
  const auto root = builder.add_rule("root");
  builder.define(root, objects);
  return builder.compile(root);
}

TEST(JsonSchema, ObjectsAreToldFromOtherValues) {
  for (const char* const schema :
       {R"({"title":"x"})", R"({"type":["object","null"]})", R"({"description":"x","$defs":{}})",
        R"({"anyOf":[{"type":"string"},{"type":"object"},{"const":1}]})",
        R"({"$ref":"#/$defs/x","$defs":{"x":{"type":["object","string"]}}})"}) {
    const Grammar grammar = compiled(objects_grammar(schema));
    EXPECT_TRUE(accepts(grammar, "{}")) << schema;
    for (const char* const other : {"t", "n", "\"", "1", "["}) EXPECT_FALSE(begins(grammar, other));
  }
  const Grammar tree = compiled(objects_grammar(
      R"({"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false})"));
  EXPECT_TRUE(accepts(tree, R"({"a":{"a":{}}})"));
  EXPECT_FALSE(begins(tree, R"({"a":1)"));
  for (const char* const schema :
       {R"({"type":"string"})", R"({"enum":[1,"a"]})", R"({"anyOf":[{"type":"null"},{"const":1}]})",
        R"({"type":["array","null"]})"})
    EXPECT_NE(objects_grammar(schema).status().message().find("f, #: no object fits"),
              std::string::npos)
        << schema;
}

TEST(Grammars, TextGoesThroughItsEndWithoutSome) {
  GrammarBuilder builder;
  const auto root = builder.add_rule("root");
  builder.define(root, builder.text_through("\n</a>", {"</a>", "</aba>", "</abb"},
                                            CharClass({{'1', '3'}, {'\n', '\n'}})));
  const Grammar grammar = compiled(builder.compile(root));
  for (const char* const text : {"\n</a>", "x\n</a>", "</\n</a>", "<<</\n\n</a>", "</aba</ab\n</a>",
                                 "4\n1\n</a>", "\u00e9</abaa>\n</a>"})
    EXPECT_TRUE(accepts(grammar, text)) << text;
  for (const char* const text :
       {"1", "\n1", "\n\n", "</a>", "x</a>", "</</a>", "</aba>", "x</abb", "</aba</abb", "\n</a> "})
    EXPECT_FALSE(begins(grammar, text)) << text;
}

}  // namespace
}  // namespace strata
