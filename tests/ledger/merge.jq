# Merges several countings: takes the median or the minimum of each figure (--arg of median or min).
def pick: if $of == "median" then sort[length / 2 | floor] else min end;
. as $all | .[0] | .rows |= [.[] | . as $row
    | [$all[].rows[] | select(.row == $row.row and .side == $row.side)] as $same
    | reduce ([$same[] | paths(type == "number")] | unique[]) as $p (.; setpath($p; [$same[] | getpath($p) // 0] | pick))]
