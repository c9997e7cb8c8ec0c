# Prints a line for each figure that grew from $was to $is, followed by the functions responsible; nothing if none grew.
#
# A figure may grow by 3 %, or by 5 % with another compiler. A small figure may also grow by the amount in $room, which
# covers its normal variation: a tenth of a wake-up for libev and for system calls. With other libraries only figures
# that do not depend on them are compared, and on another CPU not OpenSSL's, which chooses its code by the CPU. rampart
# itself must not allocate memory during an operation.
$was[0] as $was | $is[0] as $is
| (if $was.build.compiler == $is.build.compiler then 1.03 else 1.05 end) as $limit
| ($was.build.libraries == $is.build.libraries) as $same_libraries
| {own: 10, libev: 62, openssl: 20, allocations: 0.05, openssl_allocations: 0.5, system_calls: 0.1, device_calls: 0.5,
   copied_bytes: 4, wakeups_per_s: 2, resident_bytes_per_client: 200} as $room
| [$was.rows[] | {key: "\(.side) \(.row)", value: .}] | from_entries as $before
| ($before | keys - [$is.rows[] | "\(.side) \(.row)"] | .[] | "\(.): the record has this row, but this run did not count it"),
  ($is.rows[] | . as $row | "\(.side) \(.row)" as $name | $before[$name] as $old
   | if $old == null then "\($name): is not recorded: make ledger RECORD=1"
     else ($room | keys[]) as $f | select($row[$f] != null)
       | select($same_libraries or (($row.row | test("^tls| connect ") | not)
           and ($f | IN("libev", "openssl", "openssl_allocations", "resident_bytes_per_client") | not)))
       | select($f != "openssl" or $was.build.cpu == $is.build.cpu)
       | ($row.row | test(" connect ")) as $connects
       | ((if $connects then 5 else 1 end) * $room[$f]) as $more
       | if $old[$f] == null then "\($name): \($f) is not recorded: make ledger RECORD=1"
         elif $row[$f] > ([$old[$f] * $limit, $old[$f] + $more] | max) then
           "\($name): \($f) \($old[$f]) -> \($row[$f])",
           (select($f == "own" and $row.functions) | $row.functions | to_entries
            | map({key, value, grew: (.value - ($old.functions[.key] // 0))}) | map(select(.grew > $old.own / 200))
            | sort_by(-.grew) | .[:10][] | "    \(.key) +\(.grew * 100 | round / 100)")
         elif $f == "allocations" and ($connects | not) and $row[$f] > 0.05 then
           "\($name): \($row[$f]) allocations an operation, and there must be none"
         else empty end
     end)
