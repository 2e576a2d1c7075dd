# Columns whose names have more than 63 bytes: cut, with a hash, and followed through copy, changes, keys, indexes, ALTER TABLE, transforms and
# a new copy.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Encode qw(encode_utf8);
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my ($a, $b, $key) = map { 'n' x 63 . $_ } qw(a b k);
my $wide = "\x{fc}" x 40;
my $cut = 'n{54}_[0-9a-f]{8}';

# what a column is called here, by its comment
my $called = sub { return $postgres->psql(qq{select attname from pg_attribute where attrelid = 'shop.$_[0]'::regclass and col_description(attrelid, attnum) = '$_[1]'}); };
my $columns = sub { return $postgres->psql(qq{select count(*) from pg_attribute where attrelid = 'shop.$_[0]'::regclass and attnum > 0 and not attisdropped}); };
my $sql = sub { $source->sql(map { encode_utf8($_) } @_); };

$sql->('create database shop',
	"create table shop.t (`$key` int not null comment 'k', `$a` int comment 'a', `$b` int comment 'b', `$wide` varchar(10) comment 'w', short int comment 's', primary key (`$key`), key by_b (`$b`, short))",
	"insert into shop.t values (1, 10, 100, 'x', 5), (2, 20, 200, 'y', 6)",
	"create table shop.projected (`$key` int primary key, `$a` int comment 'a')", "insert into shop.projected values (1, 10)");
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start->wait_for_state('streaming')->wait_for_tables;

# ---- made, copied, streamed
my %name = map { $_ => $called->('t', $_) } qw(k a b w s);
like($name{$_}, qr/^$cut$/, "D17: a column of 64 characters is cut and ends with a hash ($_)") for qw(k a b);
is($postgres->psql(encode_utf8("select attname ~ '^\x{fc}{27}_[0-9a-f]{8}\$' from pg_attribute where attrelid = 'shop.t'::regclass and col_description(attrelid, attnum) = 'w'")), 't', 'D17: one of 80 bytes is cut between two characters');
is($name{s}, 'short', 'D17: short ones are as they are');
is(scalar(keys %{ { map { $_ => 1 } values %name } }), 5, 'D17: all are different');
my $rows = sub { return $postgres->psql(qq{select string_agg(concat_ws(',', "$name{k}", "$name{a}", "$name{b}", "$name{w}", short), ' ' order by "$name{k}") from shop.t}); };
is($rows->(), '1,10,100,x,5 2,20,200,y,6', 'they are copied');
$sql->("insert into shop.t values (3, 30, 300, 'z', 7)", "update shop.t set `$a` = 11, `$wide` = 'xx' where `$key` = 1", "delete from shop.t where `$key` = 2");
$pipeline->wait_for_catchup;
is($rows->(), '1,11,100,xx,5 3,30,300,z,7', 'and changed, by a key of such a name');
$postgres->poll("select state from pg_stat_cdc_index where source_index = 'by_b'", qr/built|valid|done|ready|created/, 30);
is($postgres->psql("select count(*) from pg_indexes where schemaname = 'shop' and tablename = 't' and indexdef like '%$name{b}%short%'"), '1', 'an index has them');

# ---- ALTER TABLE
my $c = 'm' x 64;
$sql->("alter table shop.t add `$c` int not null default 7 comment 'c', modify `$a` bigint comment 'a', change `$b` `${b}` varchar(20) comment 'b'", "insert into shop.t values (4, 5000000000, 'text', 'v', 8, 9)");
$pipeline->wait_for_catchup;
is($called->('t', 'a'), $name{a}, 'ALTER TABLE: a column keeps its name');
my $name_c = $called->('t', 'c');
like($name_c, qr/^m{54}_[0-9a-f]{8}$/, 'one comes');
is($postgres->psql(qq{select string_agg(concat_ws(',', "$name{k}", "$name{a}", "$name{b}", "$name_c"), ' ' order by "$name{k}") from shop.t}), '1,11,100,7 3,30,300,7 4,5000000000,text,9', 'with values, and other types');
$sql->("alter table shop.t change `$c` brief int comment 'c'", "update shop.t set brief = 1 where `$key` = 1", "alter table shop.t change brief `" . 'o' x 64 . "` int comment 'c'", "update shop.t set `" . 'o' x 64 . "` = 2 where `$key` = 3");
$pipeline->wait_for_catchup;
my $name_o = $called->('t', 'c');
like($name_o, qr/^o{54}_[0-9a-f]{8}$/, 'renamed to a short name and to a long one');
is($postgres->psql(qq{select string_agg("$name_o"::text, ' ' order by "$name{k}") from shop.t}), '1 2 9', 'with their values');
$sql->("alter table shop.t drop column `" . 'o' x 64 . "`, drop column `$b`", "insert into shop.t values (5, 50, 'u', 1)");
$pipeline->wait_for_catchup;
is($columns->('t'), '4', 'and dropped');
is($postgres->psql("select count(*) from cdc_schema_history where result <> 'applied'"), '0', 'all by the history');
is($pipeline->table_status('t', 'state'), 'streaming', 'the table goes on');

# ---- a new copy keeps columns of one's own, and only these
$postgres->psql("alter table shop.t add column mine int default 3");
my $file = $postgres->psql("select pg_relation_filenode('shop.t')");
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.t')});
$postgres->poll("select pg_relation_filenode('shop.t') <> $file and state = 'streaming' from pg_stat_cdc_table where source_table = 't'", 't', 60) or die "it is not copied\n" . $pipeline->describe;
$sql->("insert into shop.t values (6, 60, 't', 1)");
$pipeline->wait_for_catchup;
is($postgres->psql(qq{select string_agg(concat_ws(',', "$name{k}", "$name{a}", "$name{w}", mine), ' ' order by "$name{k}") from shop.t}), '1,11,xx,3 3,30,z,3 4,5000000000,v,3 5,50,u,3 6,60,t,3', 'and is copied anew');
$pipeline->is_verified('they are compared');

# ---- a clash is told
my $taken = $name{a};
$sql->("create table shop.clash (id int primary key, `$a` int, `$taken` int)");
$pipeline->wait_for_catchup;
$postgres->poll("select state from pg_stat_cdc_table where source_table = 'clash'", 'stopped', 30);
like($postgres->psql("select last_error_sqlstate || ' ' || last_error_detail from pg_stat_cdc_table where source_table = 'clash'"), qr/42602 Columns "$a" and "$taken" would both be called "$taken"/, 'two columns that would have one name stop their table');
$sql->("alter table shop.projected add `$taken` int");
$pipeline->wait_for_catchup;
$postgres->poll("select state from pg_stat_cdc_table where source_table = 'projected'", 'stopped', 30);
like($postgres->psql("select coalesce(last_error_detail, last_error) from pg_stat_cdc_table where source_table = 'projected'"), qr/would both be called|has a column of that name/, 'also when one comes by ALTER TABLE');

# ---- in a projection a column goes by its name here
$pipeline->drop;
$postgres->psql('drop schema shop cascade');
$sql->("alter table shop.projected drop column `$taken`");
$postgres->psql(qq{select cdc_start_pipeline('shop_in', source => 'shop', tables => '{shop.projected}', options => '{"transforms": [{"tables": "shop.*", "projection": "*, \\"$taken\\" + 1 AS more"}]}')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
$sql->('insert into shop.projected values (2, 20)', "update shop.projected set `$a` = 12 where `$key` = 1");
$pipeline->wait_for_catchup;
is($postgres->psql(qq{select string_agg("$taken" || '+1=' || more, ' ' order by more) from shop.projected}), '12+1=13 20+1=21', 'D17: a projection has them by the names that they have here');

done_testing();
