// The grammar of arguments between tags.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "grammar/other_text.h"
#include "grammar/schema_reader.h"
#include "serve/tagged_arguments.h"
#include "text/json_kinds.h"
#include "text/tagged_call.h"
#include "text/tool_calls.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using Id = GrammarBuilder::Id;

constexpr std::uint32_t kMostNameCharacters = 40;  // of an argument that the schema does not name

// Texts with which JSON of some kinds may begin.
CharClass starts_of(unsigned kinds) {
  constexpr std::pair<unsigned, CharRange> kStarts[] = {
      {JsonKinds::kNumber, {'-', '-'}}, {JsonKinds::kNumber, {'0', '9'}},
      {JsonKinds::kTrue, {'t', 't'}},   {JsonKinds::kFalse, {'f', 'f'}},
      {JsonKinds::kNull, {'n', 'n'}},   {JsonKinds::kObject, {'{', '{'}},
      {JsonKinds::kArray, {'[', '['}},
  };
  if (kinds == 0) return {};
  std::vector<CharRange> out = {{' ', ' '}, {'\t', '\t'}, {'\n', '\n'}, {'\r', '\r'}};
  for (const auto& [kind, range] : kStarts)
    if ((kinds & kind) != 0) out.push_back(range);
  return CharClass(std::move(out));
}

class TaggedWriter {
 public:
  TaggedWriter(JsonText& text, std::string_view name, const json::value& parameters,
               SchemaWork& work, SchemaNotes* notes)
      : builder_(text.builder()),
        reader_(text, parameters, fmt::format("the tool {}", name), work, notes) {}

  Result<Id> add(const TaggedTool& tool);

 private:
  Result<Id> argument(const TaggedArgument& argument);
  Result<Id> other(const TaggedArgument& argument, const std::vector<std::string>& names);
  Result<Id> value(const TaggedArgument& argument);
  Id free_text(unsigned no_json);

  GrammarBuilder& builder_;
  SchemaReader reader_;
  std::map<unsigned, Id> free_texts_;  // by the kinds that they are not
};

Result<Id> TaggedWriter::add(const TaggedTool& tool) {
  std::vector<Id> ways;
  for (const TaggedArguments& each : tool.ways) {
    std::vector<Id> parts;
    for (const TaggedArgument& named : each.named) {
      STRATA_TRY(builder_.status());
      STRATA_ASSIGN(const Id one, argument(named));
      parts.push_back(named.required ? one : builder_.optional(one));
    }
    if (each.others) {
      STRATA_ASSIGN(const Id one, other(*each.others, tool.names));
      parts.push_back(builder_.repeat(one, 0, kUnbounded));
    }
    ways.push_back(builder_.sequence(std::move(parts)));
  }
  return builder_.choice(std::move(ways));
}

Result<Id> TaggedWriter::argument(const TaggedArgument& argument) {
  STRATA_ASSIGN(const Id content, value(argument));
  const Id key = builder_.literal(fmt::format("{}{}>\n", kParameterTag, argument.key));
  return builder_.sequence({key, content, builder_.literal("\n")});
}

Result<Id> TaggedWriter::other(const TaggedArgument& argument,
                               const std::vector<std::string>& names) {
  STRATA_ASSIGN(const Id content, value(argument));
  const CharClass marks({{0, ' '}, {'<', '<'}, {'>', '>'}, {0x7f, 0x7f}});
  const auto spelled = [&](const CharClass& characters) {
    return builder_.characters(characters - marks);
  };
  const Id end = builder_.literal(">\n");
  const Id rest =
      builder_.sequence({builder_.repeat(spelled(CharClass::all()), 0, kMostNameCharacters), end});
  std::vector<std::u32string> known = {U""};
  for (const std::string& name : names)
    if (is_tagged_key(name) && name.find(' ') == name.npos) known.push_back(characters_of(name));
  const Id name = add_other_text(builder_, std::move(known), spelled, rest, end);
  return builder_.sequence(
      {builder_.literal(kParameterTag), name, content, builder_.literal("\n")});
}

// Through kEndParameterLine.
Result<Id> TaggedWriter::value(const TaggedArgument& argument) {
  std::vector<Id> ways;
  if (argument.free_text) ways.push_back(free_text(argument.no_json));
  for (const std::string& text : argument.texts)
    ways.push_back(builder_.literal(fmt::format("{}{}", text, kEndParameterLine)));
  for (const json::value& schema : argument.schemas) {
    STRATA_ASSIGN(const Id one, reader_.read_part(schema, argument.path));
    ways.push_back(builder_.sequence({one, builder_.literal(kEndParameterLine)}));
  }
  return builder_.choice(std::move(ways));
}

Id TaggedWriter::free_text(unsigned no_json) {
  const auto [found, is_new] = free_texts_.try_emplace(no_json, 0);
  if (is_new)
    found->second =
        builder_.text_through(kEndParameterLine, {kEndParameter, kEndCallTag}, starts_of(no_json));
  return found->second;
}

}  // namespace

Result<Id> add_tagged_arguments(JsonText& text, std::string_view name,
                                const json::value& parameters, SchemaWork& work,
                                SchemaNotes* notes) {
  STRATA_ASSIGN(const TaggedTool tool, tagged_tool(name, parameters, work));
  if (notes != nullptr)
    for (const std::string& each : tool.notes) notes->add(each);
  return TaggedWriter(text, name, parameters, work, notes).add(tool);
}

}  // namespace strata::serve
