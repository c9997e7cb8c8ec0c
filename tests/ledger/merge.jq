# Merges several countings: takes the maximum or the minimum of each figure (--arg of max or min).
def pick: if $of == "max" then max else min end;
. as $all | .[0] | .rows |= [.[] | . as $row
    | [$all[].rows[] | select(.row == $row.row and .side == $row.side)] as $same
    | reduce ([$same[] | paths(type == "number")] | unique[]) as $p (.; setpath($p; [$same[] | getpath($p) // 0] | pick))]
