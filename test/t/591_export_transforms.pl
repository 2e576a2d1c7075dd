# Option transforms of outgoing pipelines and of the output plugin: the examples of docs/transforms.md, filters over old and new rows, large values that were
# not touched, keys, metadata, what is refused, copies by several processes.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Rules qw(transform_examples);
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
my $json = JSON::PP->new->canonical->allow_nonref;
sub rule { my (@members) = @_; return $json->encode([@members]); }
sub text { my ($value) = @_; return !defined $value ? '' : ref $value ? $json->encode($value) : $value; }

# ---- the examples of the documentation, which incoming pipelines run too (541)
# but for kinds of targets, which are tables
my @examples = grep { $_->[0] !~ /"target"/ } transform_examples();
cmp_ok(scalar(@examples), '>=', 4, 'the documentation has examples');
$postgres->psql(q{create schema shop; create table shop.orders (id int primary key, email varchar(80), price numeric(10,2), quantity int not null, status varchar(10) not null)});
my $slot = CdcBridge::Decode->new($postgres, 'transformed', format => 'json', actions => 'insert');
$postgres->psql(q{insert into shop.orders values (1, 'ann@example.org', 2.50, 4, 'paid'), (2, 'bob@example.org', 1.00, 1, 'draft'), (3, null, 7.25, 2, 'sent')});
for my $example (@examples)
{
	my ($rule, $columns, @rows) = @$example;
	my @names = split(/\|/, $columns);
	my @got = map { my $row = $_->{row}; join('|', map { text($row->{$_}) } @names) } $slot->peek(transforms => "[$rule]");
	is_deeply(\@got, \@rows, "docs: $rule") or diag($json->encode([ $slot->peek(transforms => "[$rule]") ]));
}
my $odd = '[{"tables": "shop.orders", "projection": "*, 1 / (quantity - 1) AS x"}]';
like($slot->error(transforms => '[{"tables": "shop.orders", "target": "append"}]'), qr/"target" says how rows are written to tables, and this pipeline writes to none/, 'the output plugin refuses it, too');
my $error = $slot->error(transforms => $odd);
like($error, qr/column "x" of the projection of table shop\.orders cannot be computed: division by zero/, 'R8: an expression that throws is told, with its column');
like($slot->error(transforms => '[{"tables": "shop.orders", "projection": "*, email::int AS x"}]'), qr/cannot be computed: invalid input syntax for type integer: "\.\.\."|cannot be computed: invalid input syntax/, 'R8: a cast');
unlike($slot->error(transforms => '[{"tables": "shop.orders", "projection": "*, email::int AS x"}]'), qr/ann\@/, 'without the value');
$slot->drop;

# ---- large values that an update does not touch (P1): passed through, needed for an expression, and with the old row
$postgres->psql("create table shop.big (id int primary key, v int, large text); alter table shop.big alter large set storage external; insert into shop.big values (1, 1, repeat('l', 5000))");
$slot = CdcBridge::Decode->new($postgres, 'large', format => 'json', tables => 'shop.big');
$postgres->psql('update shop.big set v = 2');
my ($update) = $slot->peek(transforms => '[{"tables": "shop.big", "projection": "large AS renamed, v + 1 AS next, id"}]');
is($json->encode([ @$update{qw(row unchanged)} ]), '[{"id":1,"next":3},["renamed"]]', 'P1: what passes through is as untouched as it was');
like($slot->error(transforms => '[{"tables": "shop.big", "projection": "*, length(large) AS n"}]'), qr/column "n" of the projection of table shop\.big cannot be computed[\s\S]*made of column "large"/, 'P1: what is made of it cannot be');
like($slot->error(transforms => '[{"tables": "shop.big", "filter": "large is not null"}]'), qr/old rows do not have/, 'nor a filter');
$slot->skip;
$postgres->psql('alter table shop.big replica identity full; update shop.big set v = 3');
($update) = $slot->take(transforms => '[{"tables": "shop.big", "projection": "id, v, length(large) AS n", "filter": "length(large) > 4000"}]');
is($json->encode([ @$update{qw(op row old)} ]), '["update",{"id":1,"n":5000,"v":3},{"id":1,"n":5000,"v":2}]', 'P1: under REPLICA IDENTITY FULL it is there');
$postgres->psql('drop table shop.big');
$slot->drop;

# ---- what is refused, before anything runs
$postgres->psql(<<'SQL');
create table shop.item (id int primary key, name text, kind text not null, large text, secret text);
alter table shop.item alter large set storage external;
create function shop.now_text() returns text language sql stable as 'select now()::text';
create function shop.mask(t text) returns text language plpgsql immutable as 'begin return ''<'' || length(t) || ''>''; end';
SQL
my $create = sub {
	my (@members) = @_;
	my $options = rule(@members) =~ s/'/''/gr;
	return $postgres->psql_error("select cdc_create_pipeline('refused', sink => 'files', tables => '{shop.*}', options => '{\"transforms\": $options}')");
};
like($create->({ tables => 'shop.item', filter => "kind = 'a'" }), qr/cannot be used for table shop\.item[\s\S]*old rows do not have/, 'a filter over what old rows do not have');
like($create->({ tables => 'shop.item', filter => "cdc_operation = 'insert'" }), qr/depend on the way it came/, 'a filter over what is known of a change');
like($create->({ tables => 'shop.item', projection => 'name' }), qr/Column "id" of the table's key is not in its projection/, 'a projection without the key');
like($create->({ tables => 'shop.item', projection => '*', key => ['name'] }), qr/Column "name" of its key is not made of the table's key alone/, 'a key of something else');
like($create->({ tables => 'shop.item', projection => '*, random() AS r' }), qr/calls random\(\), which is volatile/, 'a volatile function');
like($create->({ tables => 'shop.item', projection => '*, shop.now_text() AS r' }), qr/calls shop\.now_text\(\), which is not immutable/, 'a function of ours that is only stable');
like($create->({ tables => 'shop.item', projection => '*, nothing AS r' }), qr/column "nothing" does not exist/, 'a column that is not there');
like($create->({ tables => 'shop.item', projection => '*, FROM' }), qr/syntax error|invalid/, 'what is no expression');

# ---- a pipeline: copy and stream
$postgres->psql(<<'SQL');
create table shop.f (id int primary key, kind text not null, v int);
alter table shop.f replica identity full;
create table shop.area (region text, id int, v int, primary key (region, id));
create table shop.part (id int primary key, v int) partition by range (id);
create table shop.part_a partition of shop.part for values from (0) to (100000);
insert into shop.item select i, 'name ' || i, 'k' || i % 3, repeat('x', 3000), 'secret ' || i from generate_series(1, 30) i;
insert into shop.f select i, case when i % 2 = 0 then 'in' else 'out' end, i from generate_series(1, 20) i;
insert into shop.area select 'eu', i, i from generate_series(1, 5) i;
insert into shop.part select i, i from generate_series(1, 20000) i;
create role owner_of_it login;
grant usage on schema shop to owner_of_it;
grant select (id, name, kind, large) on shop.item to owner_of_it;
grant select on shop.f, shop.area, shop.part, shop.part_a to owner_of_it;
grant usage on foreign server files to owner_of_it;
grant execute on function cdc_create_pipeline to owner_of_it;
SQL
my $rules = rule(
	{ tables => 'shop.item', projection => "id, shop.mask(name) AS name, upper(kind) AS kind, large, cdc_operation AS op, cdc_schema || '.' || cdc_table AS of" },
	{ tables => 'shop.f', projection => '*, v * 10 AS ten', filter => "kind = 'in'" },
	{ tables => 'shop.area', projection => "region || ':' || id::text AS key, v, cdc_position AS place, cdc_commit_time AS at", key => ['key'] },
	{ tables => 'shop.part*', projection => '*, v + 1 AS next', filter => 'id % 2 = 0' }) =~ s/'/''/gr;
$postgres->psql("set role owner_of_it; select cdc_create_pipeline('shop_out', sink => 'files', tables => '{shop.*,!shop.orders}', options => '{\"transforms\": $rules, \"publish_via_partition_root\": true, \"snapshot_workers\": 2}')");
$export->{created} = 1;
$export->start->wait_for_state('streaming');
$postgres->psql(<<'SQL');
insert into shop.item values (31, 'new', 'z', repeat('y', 3000), 's');
update shop.item set name = 'changed' where id = 1;
delete from shop.item where id = 2;
update shop.f set kind = 'out' where id = 2;
update shop.f set kind = 'in' where id = 1;
update shop.f set v = 100 where id = 4;
update shop.f set v = 100 where id = 3;
delete from shop.f where id = 3;
delete from shop.f where id = 6;
insert into shop.f values (21, 'out', 1), (22, 'in', 2);
insert into shop.area values ('us', 1, 1);
update shop.area set v = 7 where id = 1 and region = 'eu';
delete from shop.area where id = 2;
update shop.area set id = 50 where id = 3;
update shop.part set v = 0 where id < 5;
SQL
$export->wait_for_all;
is($postgres->psql("select sum(rows_copied) from pg_stat_cdc_export_table where table_name = 'part_a'"), 10000, 'of a partition only rows of the filter are copied');
my @records = $export->records;
is(scalar(grep { /secret/ } map { $json->encode($_) } @records), 0, 'a column that is left out needs no right and is nowhere');
my %item = $export->replay('shop', 'item', 'id');
is(join(' ', map { "$_:$item{$_}{name}:$item{$_}{kind}:$item{$_}{op}:$item{$_}{of}" } 1, 3, 31), '1:<7>:K1:update:shop.item 3:<6>:K0:copy:shop.item 31:<3>:Z:insert:shop.item', 'projection, mask and metadata, copied and streamed');
is(length($item{1}{large}), 3000, 'P1: a large value that was not touched passes through as such');
is(join(',', sort keys %{ $item{31} }), 'id,kind,large,name,of,op', 'and nothing else is there');
is(exists $item{2} ? 1 : 0, 0, 'a delete finds its row');
my %f = $export->replay('shop', 'f', 'id');
is(join(' ', map { "$_=$f{$_}{ten}" } sort { $a <=> $b } keys %f), $postgres->psql("select string_agg(id || '=' || v * 10, ' ' order by id) from shop.f where kind = 'in'"), 'a filter: rows that leave it, enter it, stay, and never were in it');
is(join(' ', map { $_->{op} . ($_->{after} // $_->{before})->{id} } grep { ($_->{source}{table} // '') eq 'f' && $_->{op} && $_->{op} ne 'r' } @records), 'd2 c1 u4 d6 c22', 'an update out of it is a delete, one into it an insert');
is((grep { ($_->{source}{table} // '') eq 'f' && $_->{op} && $_->{op} eq 'u' } @records)[0]{before}{ten}, 40, 'under REPLICA IDENTITY FULL the old row is transformed too');
my %area = $export->replay('shop', 'area', 'key');
is(join(' ', map { "$_=$area{$_}{v}" } sort keys %area), 'eu:1=7 eu:4=4 eu:5=5 eu:50=3 us:1=1', 'a key of our own: of the old row, too');
like($area{'us:1'}{place}, qr/^[0-9A-F]+\/[0-9A-F]+$/, 'the place of the commit');
like($area{'us:1'}{at}, qr/^20\d\d-/, 'and its time');
is($area{'eu:4'}{place}, undef, 'which a copied row does not have');
my %part = $export->replay('shop', 'part', 'id');
is(join(' ', scalar(keys %part), map { "$_=$part{$_}{next}" } 2, 4, 6), '10000 2=1 4=1 6=7', 'partitions under the name of the topmost table');

# ---- definitions
$postgres->psql(q{alter table shop.f add column more text default 'm'});
$postgres->psql(q{insert into shop.f values (30, 'in', 3, 'x')});
$export->wait_for_all;
my ($change) = grep { $_->{tableChanges} && $_->{tableChanges}[0]{id} =~ /"f"/ } $export->records;
is(join(' ', map { "$_->{name}:$_->{typeName}" } @{ $change->{tableChanges}[0]{table}{columns} // [] }), 'id:integer kind:text v:integer more:text ten:integer', 'a definition has the columns that are shipped')
  or diag($json->encode($change));
%f = $export->replay('shop', 'f', 'id');
is("$f{30}{more} $f{30}{ten}", 'x 30', '"*" takes in a new column');

# ---- soft deletes
$postgres->psql('create table shop.soft (id int primary key, v int, kind text); insert into shop.soft values (1, 1, null), (2, 2, null), (3, 3, null)');
$postgres->psql('alter table shop.soft replica identity full; create table shop.thin (id int primary key, v int)');
my $soft = sub {
	my ($rule) = @_;
	my $slot = CdcBridge::Decode->new($postgres, 'soft', format => 'json', tables => 'shop.soft,shop.thin', transforms => rule($rule));
	return $slot;
};
my $refused = $soft->({ tables => 'shop.thin', soft_delete => JSON::PP::true });
$postgres->psql('insert into shop.thin values (1, 1)');
like($refused->error, qr/"soft_delete", and the log does not have what column "v" is made of[\s\S]*REPLICA IDENTITY FULL/, 'soft_delete needs the whole old row');
like($refused->error(transforms => rule({ tables => 'shop.thin', soft_delete => 'yes' })), qr/"soft_delete" is neither true nor false/, 'and is true or false');
$refused->drop;
my $marks = $soft->({ tables => 'shop.soft', projection => 'id, v * 2 AS twice, cdc_operation AS op', filter => "kind is distinct from 'out'", soft_delete => JSON::PP::true });
$postgres->psql(q{update shop.soft set v = 10 where id = 1; delete from shop.soft where id = 2; update shop.soft set kind = 'out' where id = 3; insert into shop.soft values (4, 4, null)});
my @marks = $marks->take;
is_deeply([ map { "$_->{op} $_->{row}{id} $_->{row}{twice} $_->{row}{op} " . ($_->{row}{cdc_deleted} ? 'deleted' : 'there') . ' ' . (defined $_->{row}{cdc_deleted_at} ? 'at' : 'never') } @marks ],
	[ 'update 1 20 update there never', 'update 2 4 delete deleted at', 'update 3 6 delete deleted at', 'insert 4 8 insert there never' ], 'soft_delete: a row that is deleted, or leaves the filter, is one that has a mark')
  or diag($json->encode(\@marks));
is($marks[1]{old}{twice}, 4, 'with the row of before');
$marks->drop;
$postgres->psql('drop table shop.soft, shop.thin');

# ---- partition keys: made of the key, shown beside it
$postgres->psql('create table shop.line (customer int, id int, v int, primary key (customer, id))');
my $parts = CdcBridge::Decode->new($postgres, 'parts', format => 'json', tables => 'shop.line', include_key => 'on');
$postgres->psql('insert into shop.line values (7, 1, 1); update shop.line set v = 2; update shop.line set customer = 8; delete from shop.line');
my $partition = sub { my (@rules) = @_; return map { join(' ', $_->{value}{op}, map { text($_) } @$_{qw(key partition_key)}) } $parts->peek(@rules); };
is_deeply([ $partition->(transforms => rule({ tables => 'shop.line', partition_key => ['customer'] })) ],
	[ 'insert {"customer":7,"id":1} {"customer":7}', 'update {"customer":7,"id":1} {"customer":7}', 'update {"customer":8,"id":1} {"customer":8}', 'delete {"customer":8,"id":1} {"customer":8}' ], 'partition_key: of every kind of change')
  or diag($json->encode([ $parts->peek ]));
is_deeply([ $partition->(format => 'debezium-json', transforms => rule({ tables => 'shop.line', projection => "*, cdc_table || (customer % 4)::text AS part", partition_key => [ 'part', 'id' ] })) ],
	[ 'c {"customer":7,"id":1} {"id":1,"part":"line3"}', 'u {"customer":7,"id":1} {"id":1,"part":"line3"}', 'u {"customer":8,"id":1} {"id":1,"part":"line0"}', 'd {"customer":8,"id":1} {"id":1,"part":"line0"}' ], 'also computed, in each format');
is_deeply([ $partition->() ]->[0], 'insert {"customer":7,"id":1} ', 'without it there is none');
like($parts->error(transforms => rule({ tables => 'shop.line', partition_key => ['v'] })), qr/Column "v" of its "partition_key" is not made of the table's key alone[\s\S]*USING INDEX/, 'a partition key of something else is refused');
like($parts->error(transforms => rule({ tables => 'shop.line', partition_key => [ 'id', 'x' ] })), qr/Its "partition_key" has a column "x", and the projection has none/, 'and one of no column');
$parts->drop;
$postgres->psql('drop table shop.line');

# ---- functions are followed, and a value that is not there
$postgres->psql(q{create or replace function shop.mask(t text) returns text language sql immutable as 'select ''[]'''});
$postgres->psql(q{update shop.item set name = 'again' where id = 3});
$export->wait_for_all;
%item = $export->replay('shop', 'item', 'id');
is($item{3}{name}, '[]', 'a function that is replaced counts from then on');

# in one session, and where the planner puts the function's body into the expression
$postgres->psql(q{create table shop.tagged (id int primary key, t text); create function shop.tag(t text) returns text language sql immutable as $$ select 'old ' || t $$});
my $tags = CdcBridge::Decode->new($postgres, 'tags', format => 'json', tables => 'shop.tagged');
$postgres->psql(q{insert into shop.tagged values (1, 'a')});
$postgres->psql(q{create or replace function shop.tag(t text) returns text language sql immutable as $$ select 'new ' || t $$});
$postgres->psql(q{insert into shop.tagged values (2, 'b')});
is_deeply([ map { $_->{row}{t} } $tags->peek(transforms => rule({ tables => 'shop.tagged', projection => 'id, shop.tag(t) AS t' })) ], [ 'old a', 'new b' ], 'each row meets the function of its time');
$tags->drop;

done_testing();
