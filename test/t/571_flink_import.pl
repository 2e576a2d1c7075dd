# The example of docs/flink.md: what cdc_import_flink_pipeline() makes of it is what the page says, and it runs.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$postgres->psql('create extension cdc_bridge');
my $page = slurp('docs/flink.md');
my ($yaml) = $page =~ /^```yaml\n(.*?)^```/ms or die 'no example';
my ($says) = $page =~ /^```sql\n(CREATE SERVER.*?)^```/ms or die 'no statements';

$source->sql(
	(map { ("create database shop_$_", "create table shop_$_.orders (id int primary key, price decimal(10,2), quantity int not null, status varchar(10), paid tinyint(1))") } 1, 2),
	'create table shop_1.item_a (id int primary key, v int)', 'create table shop_1.item_old (id int primary key)',
	q{insert into shop_1.orders values (1, 2.50, 4, 'paid', 1), (2, 1, 1, 'draft', 0)}, q{insert into shop_2.orders values (3, 7.25, 2, 'sent', 0)}, 'insert into shop_1.item_a values (1, 1)');

# ---- what the page says
sub import_rows { my ($columns, $where) = @_; return $postgres->psql("select $columns from cdc_import_flink_pipeline(\$yaml\$$yaml\$yaml\$) $where"); }
my @said = split /\n/, $says;
my @made = split /\n/, import_rows('sql', "where kind = 'script'");
is(scalar(@made), scalar(@said), 'as many statements as the page has');
for my $i (0 .. $#said)
{
	my ($beginning) = $said[$i] =~ /^([^…]*)/;
	is(substr($made[$i], 0, length $beginning), $beginning, "statement $i");
}
my %status = map { my ($item, @status) = split /\|/; $item => "@status" } split /\n/, import_rows("item, string_agg(distinct status, ', ' order by status)", "where kind <> 'script' group by item");
is($status{$_}, { tables => 'differs, translated', 'tables.exclude' => 'translated', 'server-id' => 'differs', 'debezium.max.batch.size' => 'no counterpart', type => 'differs, translated',
	'include.schema.changes' => 'translated', 'transform 1' => 'translated', 'transform 1.table-options' => 'no counterpart', 'route 1' => 'differs', 'route 2' => 'translated', parallelism => 'differs' }->{$_}, "$_ is told as the page says")
  for 'tables', 'tables.exclude', 'server-id', 'debezium.max.batch.size', 'type', 'include.schema.changes', 'transform 1', 'transform 1.table-options', 'route 1', 'route 2', 'parallelism';
unlike(join("\n", @made), qr/secret/, 'the password is not repeated');

# ---- and it runs, with the source's address and the secret in their places
my ($host, $port, $user, $password) = ($source->host, $source->port, $source->user, $source->password);
s/host 'db1', port '3306', server_id '5401'/host '$host', port '$port'/, s/username 'repl', password '\*{8}'/username '$user', password '$password'/ for @made;
# both shards have tables of one name: the second one would have no place in a plain mirror
$made[2] =~ s/"shop_\*\.orders"/"shop_1.orders"/ or die "no pattern in $made[2]";
$postgres->psql(join("\n", @made));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'shop_to_lake', target_schema => 'lake');
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($pipeline->status('tables_stopped'), '0', 'no table is stopped') or diag($pipeline->describe);
is($postgres->psql('select id, total, status, origin, paid from lake.all_orders'), '1|10.00|PAID|orders|t', 'route, transform, filter and type');
is($postgres->psql('select * from "lake"."raw_item_a"'), '1|1', 'the symbol in a route');
is($postgres->psql(q{select count(*) from pg_class where relname ~ 'item_old'}), '0', 'what is excluded is not there');
$source->sql(q{update shop_1.orders set status = 'sent' where id = 2});
$pipeline->wait_for_catchup;
is($postgres->psql('select id, status from lake.all_orders order by id'), "1|PAID\n2|SENT", 'and changes follow');

# ---- a byte order mark, and what is no port
$yaml =~ s/^(\s+port:).*$/$1 abc/m or die 'no port';
my $unmarked = import_rows('sql', "where kind = 'script'");
$yaml = "\x{FEFF}$yaml";
is(import_rows('sql', "where kind = 'script'"), $unmarked, 'a byte order mark is passed over');
unlike($unmarked, qr/port 'abc'/, 'a port that is no number is not given on');
is(import_rows('status', "where item = 'port'"), 'no counterpart', 'and told');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
