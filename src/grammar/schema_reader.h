// Reads schemas: what json_schema.h promises.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json_pattern.h"
#include "grammar/json_text.h"
#include "grammar/schema_document.h"

namespace strata {

class SchemaReader : private SchemaDocument {
 public:
  using Id = GrammarBuilder::Id;
  using RuleId = GrammarBuilder::RuleId;

  // Keeps references to `json`, `root` and `work`.
  SchemaReader(JsonText& json, const Value& root, std::string_view where, SchemaWork& work,
               SchemaNotes* notes = nullptr)
      : SchemaDocument(root, where, work, notes), builder_(json.builder()), json_(json) {}

  // A schema that stands in the document at `path`, or was made of what does.
  Result<Id> read_part(const Value& schema, const Path& path);
  Result<Id> read_objects();

 private:
  struct Member {
    std::string name;
    Id text = 0;
    bool required = false;
  };

  // Whether the builder takes more.
  Status check_room(const Path& path) const {
    const Status& status = builder_.status();
    return status.ok() ? status : status.with_context(fmt::format("{}, {}", where_, path));
  }
  Result<Id> read_schema(const Value& schema, const Path& path, std::size_t nesting);
  Result<Id> read_object(const Object& schema, const Path& path, std::size_t nesting);
  Result<Id> read_type(const Object& schema, std::string_view type, const Path& path,
                       std::size_t nesting);

  Result<Id> read_reference(const Object& schema, const Value& ref, const Path& path,
                            std::size_t nesting);
  // A schema that is both; `part_path` is where `part` stands.
  Result<Id> read_merged(Object base, const Value& part, const Path& part_path, const Path& path,
                         std::size_t nesting);
  Result<Id> read_all(const Object& schema, const Value& all, const Path& path,
                      std::size_t nesting);
  Result<Id> read_any(const Object& schema, const Value& any, std::string_view key,
                      const Path& path, std::size_t nesting);
  // In schema_constants.cc: values that are listed.
  Result<Id> read_constants(const Object& schema, const Path& path);
  // Whether the other keywords allow a listed value.
  Result<bool> fits(const Value& value, const Object& schema, const Path& path) const;
  Result<Grammar> listed_texts(const Object& schema, const Path& path);
  Result<bool> text_fits(const Value& text, const Grammar& texts, const Path& path) const;
  Result<bool> number_fits(const Value& number, const Object& schema, const Path& path) const;

  // In schema_values.cc: values of one type.
  Result<std::uint32_t> count(const Object& schema, std::string_view key, std::uint32_t otherwise,
                              const Path& path) const;
  Result<std::optional<JsonBound>> bound(const Object& schema, std::string_view key,
                                         std::string_view exclusive_key, int side,
                                         const Path& path) const;
  // The least (side 1) or largest (-1) integer within the bounds.
  Result<std::optional<std::int64_t>> integer_bound(const Object& schema, int side,
                                                    const Path& path) const;
  Result<Id> read_number(const Object& schema, const Path& path);
  Result<Id> read_integer(const Object& schema, const Path& path);
  Result<Id> read_string(const Object& schema, const Path& path);
  // By one pattern or format; none where that is left out.
  Result<std::optional<Id>> read_pattern(std::string_view regex, LengthLimits limits,
                                         std::string_view key, const Path& path);
  // The bounds that formats give to integers.
  static std::vector<std::pair<std::int64_t, std::int64_t>> sizes_of(const Object& schema);
  Status check_number_format(const Object& schema, const Path& path) const;
  Status check_multiples(const Object& schema, bool whole, const Path& path) const;
  Result<Id> read_array(const Object& schema, const Path& path, std::size_t nesting);

  // In schema_objects.cc.
  Result<Id> read_members(const Object& schema, const Path& path, std::size_t nesting);
  // The names of such members and their values.
  Result<std::optional<Id>> read_named_by_pattern(const Object& schema, const Path& path,
                                                  std::size_t nesting);
  Result<Id> read_map(const Object& schema, const Path& path, std::size_t nesting);
  // The value of a member that `properties` does not name; none where there is to be none.
  Result<std::optional<Id>> read_additional(const Object& schema, bool otherwise, const Path& path,
                                            std::size_t nesting);
  Id members_in_order(const std::vector<Member>& members, std::optional<Id> another);

  GrammarBuilder& builder_;
  JsonText& json_;
  std::map<std::string, RuleId> references_;
  std::vector<std::pair<std::string, RuleId>> pending_;
};

}  // namespace strata
