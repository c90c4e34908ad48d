#include "bench_serve_chunk.h"

#include <array>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <cstdint>
#include <utility>

namespace strata::apps {
namespace {

namespace json = boost::json;

// Reads a chunk without making values of it: one comes with every token, and whoever reads it
// takes the processor from a server on the same machine.
class ChunkHandler {
 public:
  using Code = boost::system::error_code;
  using Piece = json::string_view;
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) {
    if (place() == Place::kDocument) return enter(Place::kEvent);
    if (place() == Place::kChoices) return enter(Place::kChoice);
    if (place() == Place::kChoice && key_ == "delta") return enter(Place::kDelta);
    if (place() == Place::kEvent && key_ == "usage") chunk_.says_more = true;
    return enter(Place::kOther);
  }
  bool on_object_end(std::size_t, Code&) { return leave(); }
  bool on_array_begin(Code&) {
    const bool choices = place() == Place::kEvent && key_ == "choices";
    return enter(choices ? Place::kChoices : Place::kOther);
  }
  bool on_array_end(std::size_t, Code&) { return leave(); }
  bool on_key_part(Piece piece, std::size_t size, Code&) {
    if (size == piece.size()) key_.clear();
    key_.append(piece.data(), piece.size());
    return true;
  }
  bool on_key(Piece piece, std::size_t size, Code& error) {
    on_key_part(piece, size, error);
    if (place() == Place::kEvent && key_ == "error") chunk_.says_more = true;
    if (place() == Place::kDelta && key_ == "tool_calls") chunk_.calls_tools = true;
    return true;
  }
  bool on_string_part(Piece piece, std::size_t, Code&) {
    if (place() == Place::kChoice
            ? key_ == "text"
            : place() == Place::kDelta && (key_ == "content" || key_ == "reasoning_content"))
      chunk_.text.append(piece.data(), piece.size());
    return true;
  }
  bool on_string(Piece piece, std::size_t size, Code& error) {
    return on_string_part(piece, size, error);
  }
  bool on_number_part(Piece, Code&) { return true; }
  bool on_int64(std::int64_t, Piece, Code&) { return true; }
  bool on_uint64(std::uint64_t, Piece, Code&) { return true; }
  bool on_double(double, Piece, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(Piece, Code&) { return true; }
  bool on_comment(Piece, Code&) { return true; }

  bool is_object() const { return is_object_; }
  AnswerChunk take() { return std::move(chunk_); }

 private:
  enum class Place : std::uint8_t { kDocument, kEvent, kChoices, kChoice, kDelta, kOther };

  Place place() const { return depth_ < places_.size() ? places_[depth_] : Place::kOther; }
  bool enter(Place place) {
    is_object_ = is_object_ || place == Place::kEvent;
    if (++depth_ < places_.size()) places_[depth_] = place;
    return true;
  }
  bool leave() { return --depth_, true; }

  AnswerChunk chunk_;
  bool is_object_ = false;
  std::string key_;                // the last
  std::array<Place, 5> places_{};  // by depth
  std::size_t depth_ = 0;
};

}  // namespace

std::optional<AnswerChunk> read_chunk(std::string_view data) {
  json::basic_parser<ChunkHandler> parser({});
  boost::system::error_code error;
  const std::size_t read = parser.write_some(false, data.data(), data.size(), error);
  if (error || read < data.size() || !parser.handler().is_object()) return std::nullopt;
  return parser.handler().take();
}

}  // namespace strata::apps
