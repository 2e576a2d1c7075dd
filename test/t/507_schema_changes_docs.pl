# docs/schema-changes.md: its example runs and gives what it shows; each kind and mode that it names is one of the options' words.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(slurp tree);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $text = slurp(tree() . '/docs/schema-changes.md');
my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my ($example) = $text =~ /<!-- test\/t\/507_schema_changes_docs\.pl runs this.*?-->\n(.*?)^## Modes\n/ms or die 'there is no example';
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
my $started = 0;
my $checked = 0;
$source->sql('create database shop');
while ($example =~ /^```(mysql|sql)\n(.*?)^```\n(?:\n((?:^\|[^\n]*\n)+))?/msg)
{
	my ($where, $statements, $table) = ($1, $2, $3);
	if ($where eq 'mysql')
	{
		$source->sql(grep { /\S/ } split(/;\n/, $statements));
		$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables unless $started++;
		next;
	}
	$pipeline->wait_for_catchup;
	my (undef, undef, @rows) = split(/\n/, $table);
	is($postgres->psql($statements =~ s/;\s*\z//r), join("\n", map { join('|', map { s/^\s+|\s+$//gr } split(/\|/, s/^\||\|$//gr)) } @rows), "the example's answer: $statements");
	$checked++;
}
is($checked, 2, 'the example has answers');
$pipeline->is_same('and is as the source', 'item');

my $options = join(' ', map { $postgres->psql("select allowed from cdc_list_options() where kind = 'pipeline' and subject = 'pipeline' and name = '$_'") } 'schema_changes');
like($text, qr/`$_`/, "mode $_ is told") for split(/, /, $options);
for my $kind ($text =~ /^\| [^|]+ \| `(\w+)` \|/mg)
{
	unlike($postgres->psql_error(qq{select cdc_alter_pipeline('shop_in', options => '{"schema_changes_exclude": ["$kind"]}')}) // '', qr/no kind/, "kind $kind is one of the option's");
}
$postgres->psql($1) while $text =~ /^```sql\n(SELECT source_table, last_error.*?)^```/msg;
pass('the query for locks runs');
done_testing();
