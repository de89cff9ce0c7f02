#include "runtime/base/json.h"

#include <exception>
#include <utility>
#include <vector>

#include "runtime/base/foreign_file.h"
#include "runtime/base/mapped_file.h"

namespace bowline {
namespace {

using nlohmann::json;

// Builds a document from parse events. The library calls it without recursion, so depth is bounded by us alone, for the
// sake of code that walks the result.
class DocumentBuilder : public nlohmann::json_sax<json> {
 public:
  explicit DocumentBuilder(JsonLimits limits) : limits_(limits) {}

  bool null() override { return Add(json(nullptr)); }
  bool boolean(bool value) override { return Add(json(value)); }
  bool number_integer(number_integer_t value) override { return Add(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Add(json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return Add(json(value)); }
  bool string(string_t& value) override { return Add(json(std::move(value))); }
  bool binary(binary_t&) override { return Fail("binary data is no JSON"); }
  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    auto [slot, is_new] = open_.back()->get_ref<json::object_t&>().try_emplace(name);
    if (!is_new) return Fail(absl::StrCat("key \"", name.substr(0, 200), "\" appears twice in one object"));
    slot_ = &slot->second;
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..." without the library's own name.
    const absl::string_view message = error.what();
    const size_t bracket = message.find("] ");
    return Fail(message.substr(bracket == absl::string_view::npos ? 0 : bracket + 2));
  }

  const std::string& error() const { return error_; }
  json TakeDocument() { return std::move(document_); }

 private:
  bool Fail(absl::string_view message) {
    error_ = std::string(message);
    return false;
  }

  // The place for the next value: the document, the value of the current key, or the end of the current array.
  json* Place(json value) {
    if (++values_ > limits_.max_values) {
      Fail(absl::StrCat("more than ", limits_.max_values, " values; no file of this kind is so large"));
      return nullptr;
    }
    json* place = &document_;
    if (!open_.empty() && open_.back()->is_array()) {
      auto& array = open_.back()->get_ref<json::array_t&>();
      array.push_back(std::move(value));
      return &array.back();
    }
    if (!open_.empty()) place = slot_;
    *place = std::move(value);
    return place;
  }

  bool Add(json value) { return Place(std::move(value)) != nullptr; }

  bool Open(json container) {
    if (open_.size() == static_cast<size_t>(limits_.max_depth)) {
      return Fail(absl::StrCat("arrays and objects are nested more than ", limits_.max_depth, " deep"));
    }
    // An array does not grow while one of its elements is open, so the pointers stay valid.
    json* place = Place(std::move(container));
    if (place != nullptr) open_.push_back(place);
    return place != nullptr;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  JsonLimits limits_;
  json document_;
  std::vector<json*> open_;
  json* slot_ = nullptr;
  size_t values_ = 0;
  std::string error_;
};

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text, absl::string_view what, JsonLimits limits) {
  DocumentBuilder builder(limits);
  try {
    if (json::sax_parse(text.begin(), text.end(), &builder)) return builder.TakeDocument();
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": cannot parse JSON: ", error.what()));
  }
  // A download may have left another file in place of the document.
  const absl::string_view format = ForeignFormatOf({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": not valid JSON: ", format.empty() ? absl::string_view(builder.error()) : format));
}

absl::StatusOr<json> ReadJsonFile(const std::string& path, size_t max_bytes, JsonLimits limits) {
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, MappedFile::Access::kSequential));
  if (file.bytes().size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' has ", file.bytes().size(), " bytes; at most ",
                                                   max_bytes, " are read; is it the right file?"));
  }
  if (file.bytes().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is empty; it should hold a JSON document"));
  }
  return ParseJson({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                   absl::StrCat("'", path, "'"), limits);
}

std::string DescribeJsonType(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "an integer";
    case json::value_t::number_float:
      return "a number with a fraction or beyond 64 bits";
    default:
      return "something else";
  }
}

}  // namespace bowline
