local records = {}
for i = 1, 3000 do records[i] = {x = i, s = "k" .. i} end
local n = 0
for i = 1, #records do n = n + records[i].x + #records[i].s end
table.sort(records, function(a, b) return a.s < b.s end)
print(n, records[1].s, records[#records].s)
