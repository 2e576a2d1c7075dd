# cells: pg15 pg17 pg18
# What statements do to tables comes at its place between the rows: plain JSON and Debezium JSON, for the file sink and for foreign readers.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Env qw(slurp tree);
use CdcBridge::Export;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*,!shop.secret}', options => '{"format": "json"}')->setup;
$postgres->psql("create schema shop; create schema other; create type shop.mood as enum ('low', 'high');
	create table shop.t (id int primary key, v text); create table other.t (id int primary key);
	insert into shop.t values (1, 'from before')");
$export->start->wait_for_state('streaming');
my $slot = CdcBridge::Decode->new($postgres, 'all', schema_changes => 'true');
my $seen = () = $export->records;    # the initial copy

# What the statements give: schema changes and rows, in order.
sub after
{
	$postgres->psql(join('; ', @_));
	$export->wait_for_all;
	my @records = $export->records;
	splice(@records, 0, $seen);
	$seen += @records;
	return @records;
}
sub brief { return join(' ', map { $_->{op} eq 'schema' ? "$_->{change}:$_->{schema}.$_->{table}" : "$_->{op}:$_->{schema}.$_->{table}" } @_); }
sub column { my ($record, $name) = @_; return (grep { $_->{name} eq $name } @{ $record->{columns} })[0]; }
sub columns { my ($record) = @_; return join(', ', map { "$_->{name} $_->{type}" . ($_->{nullable} ? '' : ' not null') } @{ $record->{columns} }); }

# ---- CREATE, ALTER and DROP, between rows of the same transaction
my @got = after("begin; create table shop.n (id bigint generated always as identity primary key, price numeric(10,2) not null default 1.5, at timestamptz(3) default now(), mood shop.mood)",
	'insert into shop.n (price) values (2)', 'alter table shop.n add column note text, drop column at', 'insert into shop.n (note) values ($$x$$)', 'drop table shop.n; commit');
is(brief(@got), 'create:shop.n insert:shop.n alter:shop.n insert:shop.n drop:shop.n', 'definitions and rows come in the order of the log');
is(columns($got[0]), 'id bigint not null, price numeric(10,2) not null, at timestamp(3) with time zone, mood shop.mood', 'CREATE TABLE: columns, types, which may be null');
is_deeply([ @{ $got[0] }{qw(command identity)}, $got[0]{key} ], [ 'CREATE TABLE', 'default', ['id'] ], 'command, replica identity, key');
is_deeply([ column($got[0], 'id')->{as_identity}, column($got[0], 'price')->{default}, column($got[0], 'at')->{default}, column($got[0], 'mood')->{labels} ],
	[ 'always', '1.5', 'now()', [ 'low', 'high' ] ], 'identity, defaults, labels');
is_deeply([ map { $_->{seq} } @got ], [ 1 .. 5 ], 'each has its place in the transaction');
is(columns($got[2]), 'id bigint not null, price numeric(10,2) not null, mood shop.mood, note text', 'ALTER TABLE with two subcommands is one record');
is_deeply([ $got[4]{command}, $got[4]{columns} ], [ 'DROP TABLE', undef ], 'DROP TABLE: the name');
@got = after('begin; create table shop.never (id int primary key); rollback; create table shop.u (a int, b text); alter table shop.u add primary key (a)');
is(brief(@got), 'create:shop.u alter:shop.u', 'what is rolled back does not come');
is(columns($got[1]), 'a integer not null, b text', 'a primary key makes columns NOT NULL');
is_deeply([ $got[0]{key}, $got[0]{identity}, $got[1]{key} ], [ [], 'nothing', ['a'] ], 'and is the key');
@got = after('create table shop.sel as select 1 as a; select 2 as b into shop.sel2; drop table shop.sel, shop.sel2');
is(brief(@got[ 0 .. 3 ], sort { $a->{table} cmp $b->{table} } @got[ 4 .. $#got ]), 'insert:shop.sel create:shop.sel insert:shop.sel2 create:shop.sel2 drop:shop.sel drop:shop.sel2', 'CREATE TABLE AS: rows come before the definition; DROP of two tables');

# ---- P18
@got = after('alter table shop.t add column w int not null default 7, add column x timestamptz default $$2024-02-29 12:00:00+00$$, add column y int[] default $${1,2}$$, add column z int');
is(brief(@got), 'alter:shop.t', 'P18: adding columns with defaults ships no rows');
is_deeply([ map { column($got[0], $_)->{existing} } qw(w x y) ], [ 7, '2024-02-29T12:00:00Z', [ 1, 2 ] ], 'P18: but what the rows of before have in them, in the form that rows have');
ok(!exists column($got[0], 'z')->{existing} && !$got[0]{rewritten}, 'P18: nothing where they have NULL');
@got = after('alter table shop.t alter column w set default 8', 'insert into shop.t (id) values (2)', 'update shop.t set v = $$y$$ where id = 1');
is_deeply([ column($got[0], 'w')->{default}, column($got[0], 'w')->{existing} ], [ '8', 7 ], 'P18: another default does not change them');
is_deeply([ $got[1]{row}{w}, $got[2]{row}{w} ], [ 8, 7 ], 'P18: rows agree');
@got = after('alter table shop.t add column r float8 default random()');
ok($got[0]{rewritten}, 'P18: a default that differs by row: the table was written anew, and that is told');

# ---- P19
@got = after('alter table shop.t replica identity full', 'alter table shop.t alter column w drop not null', 'alter table shop.t replica identity default');
is_deeply([ map { $_->{identity} } @got ], [ 'full', 'full', 'default' ], 'P19: changes of the replica identity');
is_deeply([ map { column($_, 'v')->{nullable} ? 1 : 0 } @got ], [ 1, 1, 1 ], 'P19: are no changes of NOT NULL');
is_deeply([ map { column($_, 'w')->{nullable} ? 1 : 0 } @got ], [ 0, 1, 1 ], 'P19: and DROP NOT NULL is told as such');
is_deeply([ map { $_->{key} } @got ], [ ['id'], ['id'], ['id'] ], 'P19: the key stays');

# ---- P20
$export->stop;
$postgres->psql("insert into shop.t (id, v) values (10, 'old shape'); alter table shop.t rename column v to vv; insert into shop.t (id, vv) values (11, 'renamed');
	alter table shop.t alter column w type text using 'w' || coalesce(w, 0); insert into shop.t (id, w) values (12, 'wide'); alter table shop.t drop column x;
	insert into shop.t (id) values (13); insert into shop.u values (1, 'last'); drop table shop.u; create table shop.u (a int primary key, other int); insert into shop.u values (1, 2)");
$export->start;
@got = after();
is(brief(@got), 'insert:shop.t alter:shop.t insert:shop.t alter:shop.t insert:shop.t alter:shop.t insert:shop.t insert:shop.u drop:shop.u create:shop.u insert:shop.u',
	'P20: what happened before it is decoded comes in order');
is_deeply([ map { join(',', sort keys %{ $_->{row} }) } grep { $_->{op} eq 'insert' } @got ],
	[ 'id,r,v,w,x,y,z', 'id,r,vv,w,x,y,z', 'id,r,vv,w,x,y,z', 'id,r,vv,w,y,z', 'a,b', 'a,other' ], 'P20: each row with the columns of its time');
is_deeply($got[1]{renamed_column}, { from => 'v', to => 'vv' }, 'P20: a renamed column is told as one');
is_deeply([ column($got[3], 'w')->{type}, $got[3]{rewritten} ? 1 : 0, $got[4]{row}{w} ], [ 'text', 1, 'wide' ], 'P20: a type changes, and all rows with it');

# ---- P21
@got = after("begin; alter table shop.t add column m shop.mood, add column ms shop.mood[]; alter type shop.mood add value 'middle' before 'high'; commit", "insert into shop.t (id, m) values (20, 'middle')",
	"create type other.mood as enum ('other'); create domain shop.mine as shop.mood; create table shop.d (id int primary key, m shop.mine, o other.mood)",
	"alter type shop.mood rename value 'low' to 'lowest'", 'alter type shop.mood rename to feeling');
is(brief(@got), 'alter:shop.t alter:shop.t insert:shop.t create:shop.d alter:shop.t alter:shop.d alter:shop.t alter:shop.d', 'P21: a type that changes does so in the tables that have it');
is_deeply([ map { column($got[$_], 'm')->{labels} } 0, 1, 4 ], [ [qw(low high)], [qw(low middle high)], [qw(lowest middle high)] ], 'P21: labels, in their order');
is($got[2]{row}{m}, 'middle', 'P21: a row with the new one comes after it');
is_deeply([ column($got[3], 'm')->{labels}, column($got[3], 'o')->{labels} ], [ [qw(low middle high)], ['other'] ], 'P21: types of the same name in two schemas');
is_deeply([ column($got[6], 'm')->{type}, column($got[6], 'ms')->{type} ], [ 'shop.feeling', 'shop.feeling[]' ], 'P21: and the type\'s new name');

# ---- names
@got = after('alter table shop.d rename to e', 'insert into shop.e values (1)', 'alter table shop.e rename to secret', 'insert into shop.secret values (2)',
	'alter table shop.secret set schema other', 'alter table other.secret rename to t2', 'set search_path = other, pg_catalog; alter table t2 set schema shop; reset search_path', 'insert into shop.t2 values (3)');
is(brief(@got), 'alter:shop.e insert:shop.e drop:shop.e create:shop.t2 insert:shop.t2', 'only names that are shipped');
is_deeply($got[0]{previous}, { schema => 'shop', table => 'd' }, 'RENAME: the name before');
is_deeply([ $got[2]{renamed_to}, $got[2]{command} ], [ { schema => 'shop', table => 'secret' }, 'ALTER TABLE' ], 'out of those that are shipped: it is dropped there, and where it went');
is_deeply($got[3]{previous}, { schema => 'other', table => 't2' }, 'into them: it is new there, and where it came from');
@got = after('begin; alter table shop.t2 rename to t3; alter table shop.t3 rename to t4; alter table shop.t4 add column c int; commit', 'alter schema shop rename to store', 'alter schema store rename to shop');
is_deeply([ map { $_->{previous} ? "$_->{previous}{schema}.$_->{previous}{table}" : '' } @got[ 0 .. 2 ] ], [ 'shop.t2', 'shop.t3', '' ], 'two renames in a transaction');
is_deeply([ sort map { "$_->{change} $_->{table} " . ($_->{renamed_to} // $_->{previous})->{schema} } @got[ 3 .. $#got ] ],
	[ sort map { ("drop $_ store", "create $_ store") } qw(t t4 u) ], 'a schema that is renamed takes its tables out and in');

# ---- partitions and heirs
@got = after('create table shop.p (id int, k int, primary key (id, k)) partition by list (k)', 'create table shop.p1 partition of shop.p for values in (1)', 'alter table shop.p add column c int',
	'alter table shop.p rename column c to cc', 'create table shop.p2 (k int not null, id int not null, cc int)', 'alter table shop.p attach partition shop.p2 for values in (2)', 'drop table shop.p');
is(brief(@got[ 0 .. 3 ], sort { $a->{table} cmp $b->{table} } @got[ 4 .. $#got ]), 'create:shop.p1 alter:shop.p1 alter:shop.p1 create:shop.p2 drop:shop.p1 drop:shop.p2', 'partitions under their own names hear of statements on their table')
  or diag(join("\n", map { $_->{command} } @got));
is_deeply($got[2]{renamed_column}, { from => 'c', to => 'cc' }, 'also of a renamed column');
@got = after('create table shop.parent (id int primary key); create table shop.child (x int) inherits (shop.parent)', 'alter table shop.parent add column i int default 4', 'drop table shop.parent cascade');
is(brief(@got[ 2, 3 ]), 'alter:shop.parent alter:shop.child', 'and so do heirs');
is(column($got[3], 'i')->{existing}, 4, 'with what their rows have in it');

# ---- what is no table that is shipped
@got = after('create temp table x (id int); alter table x add column y int; drop table x', 'create unlogged table shop.ul (id int primary key); alter table shop.ul add column c int; drop table shop.ul',
	'create view shop.v as select 1; create index on shop.t (y); comment on table shop.t is $$c$$; create materialized view shop.mv as select 1', 'create table other.z (id int); drop table other.z',
	"create type shop.pair as (a int, b int); create table shop.of (id int primary key, p shop.pair); alter type shop.pair add attribute c int; create type shop.gone as enum (); alter table shop.of add column g shop.gone; drop type shop.gone cascade");
is(brief(@got), 'create:shop.of alter:shop.of alter:shop.of alter:shop.of', 'temporary and unlogged tables, views, indexes: nothing; composites and DROP TYPE ... CASCADE: their tables');
is(columns($got[3]), 'id integer not null, p shop.pair', 'a column that went with its type');
@got = after('alter table shop.of set unlogged', 'insert into shop.of values (1)', 'alter table shop.of set logged', 'insert into shop.of values (2)');
is(brief(@got), 'drop:shop.of alter:shop.of insert:shop.of', 'a table that is not logged any more is gone, and comes back') or diag(join("\n", map { $_->{command} } @got));
ok($got[1]{rewritten}, 'with all of its rows unknown');

# ---- foreign readers
my @foreign = $slot->peek;
is((grep { $_->{op} eq 'schema' && $_->{schema} eq 'other' } @foreign) > 0, 1, 'a reader of a slot gets them for all tables');
is(scalar(grep { $_->{op} eq 'schema' || $_->{op} eq 'message' } $slot->peek(schema_changes => 'false', messages => 'true')), 0, 'without the option there are none, and no messages of ours');
$slot->skip;
$postgres->psql("create publication p for table shop.t (id, y); alter table shop.t add column pub int; create table shop.np (id int); drop table shop.np; create table shop.pt (id int primary key)");
$postgres->psql('alter publication p add table shop.pt; drop table shop.pt; alter table shop.t rename to ttt; alter table shop.ttt rename to t');
@foreign = $slot->take(publication_names => 'p');
is(brief(@foreign), 'alter:shop.t drop:shop.pt alter:shop.ttt alter:shop.t', 'by publications: their tables');
is(columns($foreign[0]), 'id integer not null, y integer[]', 'and their columns');
$postgres->psql('create table shop.root (id int primary key, v int default 3) partition by range (id); create table shop.leaf partition of shop.root for values from (0) to (9); alter table shop.root alter v type text; alter table shop.leaf rename to leaf2');
@foreign = $slot->take(publish_via_partition_root => 'true');
is(brief(@foreign), 'create:shop.root alter:shop.root', 'under the name of the topmost table: that one');
ok($foreign[1]{rewritten}, 'P20: rows of its partitions were written anew') or diag(explain($foreign[1]));
$postgres->psql('drop table shop.root');
is(brief($slot->take(publish_via_partition_root => 'true')), 'drop:shop.root', 'and when that is dropped');

# ---- Debezium JSON
$postgres->psql(q{create table shop."o""d" (id serial primary key, n numeric(8,3), e shop.feeling not null default 'high', g int generated always as (id * 2) stored)});
my ($debezium) = $slot->take(format => 'debezium-json', include_transaction => 'true', tables => 'shop.*', actions => 'insert');
is($debezium->{status}, 'BEGIN', 'Debezium: a transaction');
$postgres->psql(q{alter table shop."o""d" rename to even});
(undef, $debezium) = $slot->take(format => 'debezium-json', include_transaction => 'true', tables => 'shop.*');
is_deeply([ @$debezium{qw(databaseName schemaName ddl command)}, $debezium->{source}{table}, $debezium->{transaction}{total_order} ], [ 'postgres', 'shop', undef, 'ALTER TABLE', 'even', 1 ], 'Debezium: head');
my ($change) = @{ $debezium->{tableChanges} };
is_deeply([ @$change{qw(type id previousId)} ], [ 'ALTER', '"postgres"."shop"."even"', '"postgres"."shop"."o""d"' ], 'Debezium: names');
is_deeply([ $change->{table}{primaryKeyColumnNames}, map { join(' ', map { $_ // 'null' } @$_{qw(name position jdbcType typeName length scale optional autoIncremented generated hasDefaultValue)}) } @{ $change->{table}{columns} } ],
	[ ['id'], 'id 1 4 integer null null 0 1 0 1', 'n 2 2 numeric 8 3 1 0 0 0', 'e 3 1111 shop.feeling null null 0 0 0 1', 'g 4 4 integer null null 1 0 1 0' ], 'Debezium: columns');
is_deeply([ $change->{table}{columns}[2]{enumValues}, $change->{table}{columns}[2]{defaultValueExpression} ], [ [qw(lowest middle high)], "'high'::shop.feeling" ], 'Debezium: labels and default');

# ---- the example of docs/export.md
my ($statement, $example) = slurp(tree() . '/docs/export.md') =~ /450_schema_changes\.pl runs.*?-->\n```\n(.*?)```\n\n```\n(.*?)```/s;
$slot->skip;
$postgres->psql("create type shop.mood as enum ('low', 'high'); create table shop.item (id int generated always as identity primary key, name text default 'none', twice int generated always as (id * 2) stored); alter table shop.item add column stock int not null default 0;
	alter table shop.item alter column stock set default 1, add column mood shop.mood");
$slot->skip;
$postgres->psql($statement);
my ($record) = $slot->take;
my $expected = JSON::PP->new->decode($example);
delete @$_{qw(lsn commit_lsn xid time)} for $record, $expected;
is_deeply($record, $expected, 'the example of the documentation');

# ---- an option
$export->drop;
delete @$export{qw(records read)};
is($postgres->psql("select string_agg(distinct evtenabled::text, '') from pg_event_trigger"), 'D', 'without an outgoing pipeline the triggers are off');
$export->{name} = 'quiet';
$export->{options} = '{"schema_changes": "ignore", "format": "json"}';
$export->start->wait_for_state('streaming');
is($postgres->psql("select string_agg(distinct evtenabled::text, '') from pg_event_trigger"), 'D', 'and with one that does not want them');
$seen = () = $export->records;
is(brief(after('alter table shop.t add column last int', 'insert into shop.t (id) values (99)')), 'insert:shop.t', 'it gets rows alone');
$postgres->psql(q{select cdc_alter_pipeline('quiet', options => '{"schema_changes": "evolve"}')});
is($postgres->psql("select string_agg(distinct evtenabled::text, '') from pg_event_trigger"), 'A', 'the option can be changed');
$export->wait_for_state('streaming');
is(brief(after('alter table shop.t drop column last')), 'alter:shop.t', 'and then they come');

done_testing();
